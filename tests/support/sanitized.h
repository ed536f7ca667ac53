/* sanitized.h - SANITIZED: is this program built for a sanitizer, which slows the plain reference
 * down by an order of magnitude?  Tests that repeat the same code many times do it less often. */
#ifndef CGS_TESTS_SANITIZED_H
#define CGS_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif /* CGS_TESTS_SANITIZED_H */
