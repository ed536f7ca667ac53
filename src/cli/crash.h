/* crash.h - the message of a program that dies of an illegal instruction or a bad address. */
#ifndef CGS_CLI_CRASH_H
#define CGS_CLI_CRASH_H

/* From here on SIGILL, SIGSEGV, SIGBUS and SIGFPE print the verb, its instruction set and how to
 * lower it, before they end the program as by default. */
void cgs_crash_explain(const char *verb);

#endif /* CGS_CLI_CRASH_H */
