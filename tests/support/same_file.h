/* same_file.h - two files that must have the same bytes; fails the running test. */
#ifndef CGS_TESTS_SAME_FILE_H
#define CGS_TESTS_SAME_FILE_H

void same_file(const char *a, const char *b);

#endif /* CGS_TESTS_SAME_FILE_H */
