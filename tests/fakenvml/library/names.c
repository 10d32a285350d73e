/* Looking names up in the tables made from the header. */
#include "fake.h"

_Static_assert(offsetof(struct function, name) == 0 && offsetof(struct constant, name) == 0, "names come first");

static int by_name(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

const struct function *function_named(const char *name)
{
    return bsearch(name, functions, n_functions, sizeof *functions, by_name);
}

bool constant_named(const char *name, long long *value)
{
    const struct constant *found = bsearch(name, constants, n_constants, sizeof *constants, by_name);
    if (found)
        *value = found->value;
    return found != NULL;
}
