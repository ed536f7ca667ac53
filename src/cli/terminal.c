/* terminal.c - see terminal.h. */
#define _GNU_SOURCE
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

void cgs_terminal_size(int fd, int *width, int *height) {
    struct winsize w;
    *width = *height = 0;
    if (ioctl(fd, TIOCGWINSZ, &w) != 0) return;
    *width = w.ws_col;
    *height = w.ws_row;
}

bool cgs_terminal_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *v = getenv(names[i]);
        if (v && *v) return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
    }
    return false;
}
