/* instructions.c - see instructions.h.
 *
 * The option sets the environment variable, so that child processes (cgs reproduce) inherit it. */
#define _POSIX_C_SOURCE 200809L
#include "cli/instructions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cpu.h"
#include "core/environment.h"

cgs_status cgs_take_isa(int *argc, char ***argv) {
    while (*argc > 1 && !strncmp((*argv)[1], "--isa", 5)) {
        const char *word = (*argv)[1] + 5;
        int taken = 1;
        if (*word == '=') {
            word++;
        } else if (!*word) {
            if (*argc < 3) return cgs_fail(CGS_EARG, "--isa needs a value: base, v3, v4 or amx");
            word = (*argv)[2];
            taken = 2;
        } else {
            break;
        }
        if (setenv("CGS_ISA", word, 1) != 0) return cgs_fail(CGS_ENOMEM, "no memory");
        cgs_environment_reread();
        *argc -= taken;
        *argv += taken;
    }
    return CGS_OK;
}

/* OpenBLAS chooses its kernels when it is loaded, which is before main, and has no function to
 * change them: only a variable.  Its kernels for AVX-512 use no more than v4 has. */
void cgs_limit_lapack(char **argv) {
    static const char *const kernels[CGS_ISA_COUNT] = {
        [CGS_ISA_BASE] = "Prescott", [CGS_ISA_V3] = "Haswell"};
    const char *want = kernels[cgs_cpu_ask()->libraries];
    if (!want || getenv("OPENBLAS_CORETYPE")) return;
    if (setenv("OPENBLAS_CORETYPE", want, 1) != 0) return;
    execv("/proc/self/exe", argv);
    /* not possible here: LAPACK keeps its own choice */
}
