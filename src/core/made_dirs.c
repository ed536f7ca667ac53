/* made_dirs.c - see made_dirs.h. */
#define _GNU_SOURCE
#include "core/made_dirs.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* parents before what lies in them */
static struct {
    pthread_mutex_t lock;
    char *path[64]; /* (count) later ones are not kept */
    size_t count;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cgs_note_made_dir(const char *path) {
    pthread_mutex_lock(&made.lock);
    char *copy = made.count < sizeof made.path / sizeof made.path[0] ? realpath(path, NULL) : NULL;
    if (copy) made.path[made.count++] = copy;
    pthread_mutex_unlock(&made.lock);
}

void cgs_remove_empty_dirs(void) {
    pthread_mutex_lock(&made.lock);
    while (made.count) {
        rmdir(made.path[--made.count]); /* refuses where something lies in it */
        free(made.path[made.count]);
    }
    pthread_mutex_unlock(&made.lock);
}
