/* variable.h - changes a variable of the environment that the library has read already. */
#ifndef CGS_TESTS_VARIABLE_H
#define CGS_TESTS_VARIABLE_H

/* value NULL takes it away.  Devices and rollouts that are open keep what they were opened with. */
void set_variable(const char *name, const char *value);

#endif /* CGS_TESTS_VARIABLE_H */
