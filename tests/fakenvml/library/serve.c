/* Answers of all functions whose parameters the generator understands. */
#include "fake.h"

static void put_number(void *to, size_t size, enum kind kind, long double number)
{
    if (kind == KIND_DOUBLE) {
        double value = (double)number;
        memcpy(to, &value, sizeof value);
        return;
    }
    /* Little endian: the low bytes come first, so that too large a number wraps as it would in a driver. */
    uint64_t bits = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    memcpy(to, &bits, size < sizeof bits ? size : sizeof bits);
}

static nvmlReturn_t put_text(char *to, size_t room, const char *text)
{
    if (strlen(text) >= room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

static void put_bytes(unsigned char *to, size_t room, const char *hexadecimal)
{
    memset(to, 0, room);
    for (size_t i = 0; i < room && hexadecimal[2 * i] && hexadecimal[2 * i + 1]; i++) {
        char pair[3] = {hexadecimal[2 * i], hexadecimal[2 * i + 1], 0};
        to[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
}

const struct answer_value *answer_field(const struct answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->n_values; i++)
        if (answer->values[i].name && !strcmp(answer->values[i].name, name))
            return &answer->values[i];
    return NULL;
}

static const struct layout *layout_of(const struct function *function, const void *to)
{
    unsigned version;
    memcpy(&version, to, sizeof version);
    for (unsigned i = 0; i < function->n_layouts; i++)
        if (!function->layouts[i].version || function->layouts[i].version == version)
            return &function->layouts[i];
    return NULL;
}

nvmlReturn_t put_fields(const struct function *function, const struct answer *answer, void *to)
{
    const struct layout *layout = layout_of(function, to);
    if (!layout)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    for (size_t i = 0; i < layout->n_fields; i++) {
        const struct field *field = &layout->fields[i];
        const struct answer_value *value = answer_field(answer, field->path);
        char *at = (char *)to + field->offset;
        if (!value)
            continue;
        if (field->kind == KIND_TEXT)
            put_text(at, field->size, value->text ? value->text : "");
        else if (field->kind == KIND_BYTES)
            put_bytes((unsigned char *)at, field->size, value->text ? value->text : "");
        else if (field->kind != KIND_NONE)
            put_number(at, field->size, field->kind, value->number);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t put_list(const struct out *out, const struct answer *answer)
{
    unsigned room = out->count ? *out->count : out->room;
    if (out->count)
        *out->count = (unsigned)answer->n_values;
    if (out->count && answer->n_values && (!out->to || room < answer->n_values))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (!out->count)
        memset(out->to, 0, room * out->size);
    for (size_t i = 0; i < answer->n_values && i < room; i++)
        put_number((char *)out->to + i * out->size, out->size, out->kind, answer->values[i].number);
    return NVML_SUCCESS;
}

static nvmlReturn_t put(const struct function *function, const struct answer *answer, unsigned n_outs,
                        const struct out *outs)
{
    for (unsigned i = 0; i < n_outs && answer->n_values; i++) {
        const struct out *out = &outs[i];
        const struct answer_value *value = &answer->values[i < answer->n_values ? i : answer->n_values - 1];
        nvmlReturn_t result = NVML_SUCCESS;
        if (!out->to && out->shape != OUT_LIST)
            result = NVML_ERROR_INVALID_ARGUMENT;
        else if (out->shape == OUT_STRUCT)
            result = put_fields(function, answer, out->to);
        else if (out->shape == OUT_LIST)
            result = put_list(out, answer);
        else if (out->shape == OUT_TEXT)
            result = put_text(out->to, out->size, value->text ? value->text : "");
        else
            put_number(out->to, out->size, out->kind, value->number);
        if (result)
            return result;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t serve(const char *name, nvmlDevice_t device, unsigned n_args, const long long *args, unsigned n_outs,
                   const struct out *outs)
{
    const struct function *function = function_named(name);
    const struct device *card = device_of(device);
    struct call call = {function, card ? card->card : -1, card ? card->mig : WHOLE_CARD, n_args, args};
    struct answer answer;
    nvmlReturn_t result = ask(&call, &answer);
    if (result)
        return result;
    if (function->shape == TAKES_LIST && n_outs && !answer.n_values)
        return put_list(&outs[0], &answer);
    return put(function, &answer, n_outs, outs);
}
