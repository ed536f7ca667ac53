/* test_sha256.c - SHA-256 against the standard's examples, at every length around a block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/sha256.h"

static void test_examples(void **unused) {
    (void)unused;
    static const struct {
        const char *text, *hash;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char out[65], *million = malloc(1000000);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        cgs_sha256(known[i].text, strlen(known[i].text), out);
        assert_string_equal(out, known[i].hash);
    }
    assert_non_null(million);
    memset(million, 'a', 1000000);
    cgs_sha256(million, 1000000, out);
    assert_string_equal(out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* a file is read in pieces, a text in one */
static void test_files(void **unused) {
    (void)unused;
    char path[] = "/tmp/cgs-sha256-XXXXXX", whole[65], pieces[65];
    static unsigned char bytes[40000];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
    static const size_t length[] = {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 16384, 16385, 40000};
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        assert_int_equal(cgs_write_file(path, bytes, length[i]), CGS_OK);
        cgs_sha256(bytes, length[i], whole);
        assert_int_equal(cgs_sha256_file(path, pieces), CGS_OK);
        assert_string_equal(whole, pieces);
    }
    unlink(path);
    assert_int_equal(cgs_sha256_file(path, pieces), CGS_EIO);
    assert_non_null(strstr(cgs_last_error(), path));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
