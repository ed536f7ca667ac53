/* crash.h - the last sentence of a program that an illegal instruction or a wrong address ends. */
#ifndef CGS_CLI_CRASH_H
#define CGS_CLI_CRASH_H

/* From here on SIGILL, SIGSEGV, SIGBUS and SIGFPE print what ran, with which instruction set and
 * how to lower it, before they end the program as they would have. */
void cgs_crash_explain(const char *verb);

#endif /* CGS_CLI_CRASH_H */
