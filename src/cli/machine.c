/* machine.c - see machine.h.  Versions are those of the libraries that are loaded, not of the
 * headers that were compiled. */
#define _GNU_SOURCE /* environ */
#include "cli/machine.h"

#include <blosc.h>
#include <cblas.h>
#include <chipmunk/chipmunk.h>
#include <glob.h>
#include <hdf5.h>
#include <lz4.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#ifdef CGS_WITH_MUJOCO
#include <mujoco/mujoco.h>
#endif

#include "core/build.h"
#include "core/cores.h"
#include "core/cpu.h"
#include "ops/cpu/onednn.h"

enum { LINE = 256 };

#define GPU_FOLDER "/proc/driver/nvidia/gpus/"
static const char gpu_files[] = GPU_FOLDER "*/information";

/* the text after "key" and a separator in the first line that has it */
static bool look_up(const char *path, const char *key, char *out, size_t size) {
    char line[4 * LINE];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        size_t n = strlen(key);
        if (strncmp(line, key, n) != 0) continue;
        const char *value = line + n + strspn(line + n, " \t:=\"");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\"\n"), value);
        found = true;
    }
    if (f) fclose(f);
    return found;
}

/* ---- versions -------------------------------------------------------------------------------- */

static void hdf5(char *out, size_t size) {
    unsigned a = 0, b = 0, c = 0;
    H5get_libversion(&a, &b, &c);
    snprintf(out, size, "%u.%u.%u", a, b, c);
}
static void mujoco(char *out, size_t size) {
#ifdef CGS_WITH_MUJOCO
    snprintf(out, size, "%s", mj_versionString());
#else
    snprintf(out, size, "not in this build");
#endif
}
static void lapack(char *out, size_t size) { snprintf(out, size, "%s", openblas_get_config()); }
static void chipmunk(char *out, size_t size) { snprintf(out, size, "%s", cpVersionString); }
static void cjson(char *out, size_t size) { snprintf(out, size, "%s", cJSON_Version()); }
static void png(char *out, size_t size) { snprintf(out, size, "%s", png_get_libpng_ver(NULL)); }
static void zlib(char *out, size_t size) { snprintf(out, size, "%s", zlibVersion()); }
static void blosc(char *out, size_t size) { snprintf(out, size, "%s", blosc_get_version_string()); }
static void lz4(char *out, size_t size) { snprintf(out, size, "%s", LZ4_versionString()); }
static void zstd(char *out, size_t size) { snprintf(out, size, "%s", ZSTD_versionString()); }

static const struct {
    const char *name;
    void (*version)(char *out, size_t size);
} libraries[] = {{"oneDNN", cgs_onednn_version},
                 {"LAPACK", lapack},
                 {"HDF5", hdf5},
                 {"MuJoCo", mujoco},
                 {"Chipmunk", chipmunk},
                 {"cJSON", cjson},
                 {"libpng", png},
                 {"zlib", zlib},
                 {"blosc", blosc},
                 {"lz4", lz4},
                 {"zstd", zstd}};

static bool describe_libraries(cJSON *to) {
    char text[LINE];
    bool ok = to != NULL;
    for (size_t i = 0; ok && i < sizeof libraries / sizeof libraries[0]; i++) {
        libraries[i].version(text, sizeof text);
        ok = cJSON_AddStringToObject(to, libraries[i].name, text) != NULL;
    }
    return ok;
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* the model of the i-th of the GPUs that glob found, and its address */
static bool gpu_model(const glob_t *found, size_t i, char *address, size_t room, char *model,
                      size_t size) {
    const char *from = found->gl_pathv[i] + strlen(GPU_FOLDER);
    snprintf(address, room, "%.*s", (int)strcspn(from, "/"), from);
    return look_up(found->gl_pathv[i], "Model", model, size);
}

static bool first_gpu(char *out, size_t size) {
    char address[32];
    glob_t found;
    if (glob(gpu_files, 0, NULL, &found) != 0) return false;
    bool named = found.gl_pathc > 0 && gpu_model(&found, 0, address, sizeof address, out, size);
    globfree(&found);
    return named;
}

void cgs_machine_processor(char *out, size_t size, bool gpu) {
    struct utsname u;
    char implementer[LINE], part[LINE];
    if (gpu && first_gpu(out, size)) return;
    if (look_up("/proc/cpuinfo", "model name", out, size)) return;
    if (look_up("/proc/cpuinfo", "CPU implementer", implementer, sizeof implementer) &&
        look_up("/proc/cpuinfo", "CPU part", part, sizeof part)) {
        snprintf(out, size, "%s (implementer), %s (part)", implementer, part);
        return;
    }
    uname(&u);
    snprintf(out, size, "%s", u.machine);
}

static bool describe_system(cJSON *to) {
    struct utsname u;
    char system[LINE] = "unknown", kernel[sizeof u.release + sizeof u.machine + sizeof u.sysname];
    char processor[LINE];
    look_up("/etc/os-release", "PRETTY_NAME", system, sizeof system);
    uname(&u);
    snprintf(kernel, sizeof kernel, "%s %s %s", u.sysname, u.release, u.machine);
    cgs_machine_processor(processor, sizeof processor, false);
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
    return cJSON_AddStringToObject(to, "system", system) &&
           cJSON_AddStringToObject(to, "kernel", kernel) &&
           cJSON_AddStringToObject(to, "processor", processor) &&
           cJSON_AddNumberToObject(to, "memory_mib", (double)(long)memory);
}

static bool describe_instructions(cJSON *to) {
    const cgs_cpu_answer *a = cgs_cpu_ask();
    const char *limit = a->libraries == CGS_ISA_AMX ? "none" : cgs_isa_name(a->libraries);
    return to && cJSON_AddStringToObject(to, "found", cgs_isa_name(a->found)) &&
           cJSON_AddStringToObject(to, "used", cgs_isa_name(a->own)) &&
           cJSON_AddBoolToObject(to, "bf16_products", a->bf16) &&
           cJSON_AddStringToObject(to, "limit_of_libraries", limit) &&
           cJSON_AddStringToObject(to, "reason", a->reason);
}

static bool describe_cores(cJSON *to) {
    cgs_cores c = cgs_cores_ask();
    return to && cJSON_AddNumberToObject(to, "allowed", c.allowed) &&
           (c.quota > 0 ? cJSON_AddNumberToObject(to, "quota", c.quota)
                        : cJSON_AddStringToObject(to, "quota", "none")) &&
           cJSON_AddNumberToObject(to, "threads", c.use);
}

/* the version of NVIDIA's driver, also in a build without CUDA */
static bool describe_gpus(cJSON *to) {
    char text[LINE], address[32];
    bool ok = true;
    glob_t found;
    if (look_up("/proc/driver/nvidia/version", "NVRM version", text, sizeof text))
        ok = cJSON_AddStringToObject(to, "driver", text) != NULL;
    if (glob(gpu_files, 0, NULL, &found) != 0) return ok;
    for (size_t i = 0; ok && i < found.gl_pathc; i++)
        if (gpu_model(&found, i, address, sizeof address, text, sizeof text))
            ok = cJSON_AddStringToObject(to, address, text) != NULL;
    globfree(&found);
    return ok;
}

/* Opens each device: only that shows whether it works. */
static bool describe_devices(cJSON *to) {
    bool ok = to != NULL, works = true;
    char name[16] = "cpu";
    for (int i = -1; ok && works && i < 64; i++) {
        cgs_device d;
        if (i >= 0) snprintf(name, sizeof name, "cuda:%d", i);
        works = cgs_device_open(&d, name, 0) == CGS_OK;
        /* the end of the list is not an error */
        if (!works && i > 0) break;
        ok = cJSON_AddStringToObject(to, name, works ? "works" : cgs_last_error()) != NULL;
        if (works) cgs_device_close(&d);
    }
    return ok && describe_gpus(to);
}

/* variables that people set and forget */
static bool describe_environment(cJSON *to) {
    static const char *const ours[] = {"CGS_",  "OMP_",    "GOMP_", "KMP_",
                                       "DNNL_", "ONEDNN_", "CUDA_", "OPENBLAS_"};
    bool ok = to != NULL;
    for (char **e = environ; ok && *e; e++)
        for (size_t i = 0; ok && i < sizeof ours / sizeof ours[0]; i++) {
            size_t n = strcspn(*e, "=");
            char name[64];
            if (strncmp(*e, ours[i], strlen(ours[i])) != 0 || n >= sizeof name || !(*e)[n])
                continue;
            snprintf(name, sizeof name, "%.*s", (int)n, *e);
            ok = cJSON_AddStringToObject(to, name, *e + n + 1) != NULL;
        }
    return ok;
}

cgs_status cgs_machine_describe(cJSON *to) {
    char compiler[LINE];
    snprintf(compiler, sizeof compiler, "%s%s", cgs_compiler(),
             cgs_sanitized() ? ", with a sanitizer" : "");
    bool ok = cJSON_AddStringToObject(to, "version", cgs_version()) &&
              cJSON_AddStringToObject(to, "commit", cgs_commit()) &&
              cJSON_AddStringToObject(to, "compiler", compiler) && describe_system(to) &&
              describe_instructions(cJSON_AddObjectToObject(to, "instructions")) &&
              describe_cores(cJSON_AddObjectToObject(to, "cores")) &&
              describe_devices(cJSON_AddObjectToObject(to, "devices")) &&
              describe_libraries(cJSON_AddObjectToObject(to, "libraries")) &&
              describe_environment(cJSON_AddObjectToObject(to, "environment"));
    return ok ? CGS_OK : cgs_fail(CGS_ENOMEM, "no memory to describe the machine");
}
