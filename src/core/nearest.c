/* nearest.c - see nearest.h. */
#include "core/nearest.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

/* how many letters must be added, dropped, changed, or exchanged with their neighbour */
static int edits(const char *a, const char *b) {
    int na = (int)strlen(a), nb = (int)strlen(b);
    int row[3][LONGEST + 1];
    if (na > LONGEST || nb > LONGEST) return LONGEST;
    for (int j = 0; j <= nb; j++) row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3];
        const int *above = row[(i + 2) % 3], *twice = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int change = above[j - 1] + (a[i - 1] != b[j - 1]);
            int shorter = (above[j] < now[j - 1] ? above[j] : now[j - 1]) + 1;
            now[j] = change < shorter ? change : shorter;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && twice[j - 2] + 1 < now[j]) now[j] = twice[j - 2] + 1;
        }
    }
    return row[na % 3][nb];
}

/* "epis" of "episodes": what was left out is whole, not a slip of the finger */
static bool begins(const char *asked, const char *word) {
    size_t n = strlen(asked);
    return n >= 3 && !strncmp(asked, word, n);
}

cgs_nearest cgs_nearest_to(const char *asked) {
    return (cgs_nearest){.asked = asked, .distance = INT_MAX};
}

void cgs_nearest_offer(cgs_nearest *n, const char *word) {
    const char *dot = strrchr(word, '.'); /* "lr" may mean "optim.lr" */
    int d = begins(n->asked, word) ? 1 : edits(n->asked, word);
    int end = dot ? edits(n->asked, dot + 1) : d;
    if (end < d) d = end;
    if (d >= n->distance) return;
    n->distance = d;
    n->word = word;
}

const char *cgs_nearest_hint(cgs_nearest *n) {
    int most = 1 + (int)strlen(n->asked) / 4; /* more, and it is another word */
    if (n->word && n->distance <= most)
        snprintf(n->hint, sizeof n->hint, "; did you mean \"%.100s\"?", n->word);
    else
        n->hint[0] = '\0';
    return n->hint;
}
