/* made_dirs.h - the directories that this process made, so that a command that fails leaves no
 * empty ones behind. */
#ifndef CGS_CORE_MADE_DIRS_H
#define CGS_CORE_MADE_DIRS_H

/* by cgs_make_dirs; parents before what lies in them */
void cgs_note_made_dir(const char *path);
/* Removes those that nothing was put into. */
void cgs_remove_empty_dirs(void);

#endif /* CGS_CORE_MADE_DIRS_H */
