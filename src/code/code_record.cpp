#include "code_record.hpp"

#include <cstring>

namespace taiyen {
namespace {

ty_status damaged(const char *root, const char *what) {
    return failure(TY_E_DAMAGED, "read what a heap knows of its code, at the root \"%s\": %s", root, what)
        .remedy("restore the heap from a copy; to look at it without its code, open it with TY_CODE_IGNORED");
}

uint64_t checksum_of(const code_head *head) {
    code_head first = *head;
    first.checksum = 0;
    return checksum(head + 1, head->bytes - sizeof first, checksum(&first, sizeof first));
}

// The block that a root points to, or NULL if there is none.
ty_status find_block(ty_heap *heap, const char *root, uint64_t magic, size_t item_bytes, const code_head **found) {
    void *address = heap_root(heap, root);
    if (!address)
        return TY_OK;
    ty_block block;
    if (!heap_find_block(heap, address, &block) || block.address != address || block.size_bytes < sizeof(code_head))
        return damaged(root, "it leads to no such block");
    const auto *head = static_cast<const code_head *>(address);
    if (head->magic != magic || head->version != code_version)
        return damaged(root, "that is something else, or of a version that this library does not know");
    if (head->bytes < sizeof *head || head->bytes > block.size_bytes ||
        head->count > (head->bytes - sizeof *head) / item_bytes)
        return damaged(root, "its sizes are impossible");
    if (head->checksum != checksum_of(head) && !fault("code_record_without_its_checksum"))
        return damaged(root, "its checksum is wrong");
    *found = head;
    return TY_OK;
}

bool is_sound(const code_build &build) {
    return build.count <= sizeof build.bytes;
}

bool is_sound(const code_object &object) {
    return object.begin < object.end && object.load <= object.end && is_sound(object.build) &&
           memchr(object.name, '\0', sizeof object.name);
}

ty_status check_symbols(code_record *record) {
    const code_head *head = record->symbols_head;
    const auto *text = reinterpret_cast<const char *>(head);
    record->tables = reinterpret_cast<const code_table *>(head + 1);
    record->table_count = head->count;
    record->symbols = reinterpret_cast<const code_symbol *>(record->tables + head->count);
    const uint64_t room =
        (head->bytes - uint64_t(reinterpret_cast<const char *>(record->symbols) - text)) / sizeof(code_symbol);
    for (uint64_t t = 0; t < record->table_count; ++t) {
        const code_table &table = record->tables[t];
        if (!is_sound(table.build) || table.first > room || table.count > room - table.first)
            return damaged(symbols_root_name, "a table in it is impossible");
        for (uint64_t n = table.first; n < table.first + table.count; ++n)
            if ((record->symbols[n].name & ~code_own) >= head->bytes)
                return damaged(symbols_root_name, "a symbol in it is impossible");
    }
    return text[head->bytes - 1] ? damaged(symbols_root_name, "a name in it does not end") : TY_OK;
}

code_build build_from(const uint8_t *bytes, uint32_t count) {
    code_build build{};
    memcpy(build.bytes, bytes, count);
    build.count = count;
    return build;
}

void seal(os::array<char> *block, uint64_t magic, ty_code binding, uint64_t count) {
    auto *head = reinterpret_cast<code_head *>(block->begin());
    *head = {magic, code_version, uint32_t(binding), block->count(), count, 0};
    head->checksum = checksum_of(head);
}

template <class T>
ty_status append(os::array<char> *block, const T *items, size_t count) {
    char *place = nullptr;
    if (ty_status status = block->extend(count * sizeof *items, &place))
        return status;
    if (count)
        memcpy(place, items, count * sizeof *items);
    return TY_OK;
}

uint64_t flags_of(const os::loaded_object &object) {
    return uint64_t(object.program) * code_program | uint64_t(object.gone) * code_gone |
           uint64_t(object.of_kernel) * code_kernel;
}

// The symbols of one process, while they are collected.
struct collecting {
    os::array<code_symbol> symbols;
    os::array<char> names;
    os::array<code_table> tables;
    os::array<uint32_t> files; // of the object that is read: offsets of their names in `names`

    ty_status add_name(const char *file, const char *name, uint32_t *at) {
        const size_t file_bytes = file ? strlen(file) + 1 : 0, name_bytes = strlen(name) + 1;
        if (names.count() > UINT32_MAX / 2 - file_bytes - name_bytes)
            return failure(TY_E_MEMORY, "keep the names of a program's symbols: there are more than 2 GiB")
                .remedy("strip the program, or make the heap with TY_CODE_PINNED");
        *at = uint32_t(names.count());
        char *place = nullptr;
        if (ty_status status = names.extend(file_bytes + name_bytes, &place))
            return status;
        if (file) {
            memcpy(place, file, file_bytes - 1);
            place[file_bytes - 1] = ':';
        }
        memcpy(place + file_bytes, name, name_bytes);
        return TY_OK;
    }
    ty_status add(const os::symbol &found) {
        uint32_t at = 0;
        if (ty_status status = add_name(found.file, found.name ? found.name : "", &at))
            return status;
        if (!found.name)
            return files.push(at);
        const uint64_t size = found.function ? 0 : found.size;
        return symbols.push(
            {found.value, uint32_t(std::min<uint64_t>(size, UINT32_MAX)), at | (found.own ? code_own : 0)});
    }
    char *name_of(uint32_t at) { return names.begin() + (at & ~code_own); }
    static size_t file_bytes(const char *name) {
        const char *end = strpbrk(name, ":?");
        return end ? size_t(end - name) : 0;
    }
    // If several files have one name, it is uncertain which of them a symbol belongs to.
    void mark_doubtful(uint64_t first_symbol) {
        const auto sooner = [this](uint32_t one, uint32_t other) {
            const char *a = name_of(one), *b = name_of(other);
            const size_t a_bytes = file_bytes(a), b_bytes = file_bytes(b);
            const int differs = memcmp(a, b, std::min(a_bytes, b_bytes));
            return differs ? differs < 0 : a_bytes < b_bytes;
        };
        std::sort(files.begin(), files.end(), sooner);
        for (uint64_t n = first_symbol; n < symbols.count(); ++n) {
            char *name = name_of(symbols[n].name);
            const size_t bytes = file_bytes(name);
            const auto [first, end] = std::equal_range(files.begin(), files.end(), symbols[n].name, sooner);
            if (bytes && end - first > 1)
                name[bytes] = code_doubtful;
        }
        files.cut(0);
    }
};

ty_status copy_table(const code_record &before, const code_table &table, collecting &all) {
    for (uint64_t n = table.first; n < table.first + table.count; ++n) {
        const code_symbol &symbol = before.symbols[n];
        const os::symbol same{symbol.value,           symbol.size, symbol.size == 0, (symbol.name & code_own) != 0,
                              before.name_of(symbol), nullptr};
        if (ty_status status = all.add(same))
            return status;
    }
    return TY_OK;
}

ty_status add_object(const os::loaded_object &object, const code_record &before, collecting &all) {
    code_table table{build_of(object), all.symbols.count(), 0};
    for (const code_table &known : all.tables)
        if (known.build == table.build)
            return TY_OK;
    auto add = [](void *context, const os::symbol &found) { return static_cast<collecting *>(context)->add(found); };
    const code_table *known = before.table_of(table.build);
    bool is_known = known;
    if (ty_status status = known ? copy_table(before, *known, all) : os::each_symbol(object, add, &all, &is_known))
        return status;
    if (!is_known) // its file may exist again at the next call
        return TY_OK;
    all.mark_doubtful(table.first);
    table.count = all.symbols.count() - table.first;
    std::sort(all.symbols.begin() + table.first, all.symbols.end(),
              [](const code_symbol &a, const code_symbol &b) { return a.value < b.value; });
    return all.tables.push(table);
}

} // namespace

bool operator==(const code_build &a, const code_build &b) {
    return a.count == b.count && !memcmp(a.bytes, b.bytes, sizeof a.bytes);
}

const code_table *code_record::table_of(const code_build &build) const {
    for (uint64_t t = 0; t < table_count; ++t)
        if (tables[t].build == build)
            return &tables[t];
    return nullptr;
}

// CD1: what is read from a code record was checked.
ty_status record_find(ty_heap *heap, code_record *found) {
    *found = {};
    if (ty_status status = find_block(heap, code_root_name, code_magic, sizeof(code_object), &found->head);
        status || !found->head)
        return status;
    if (found->head->binding != TY_CODE_PINNED && found->head->binding != TY_CODE_MAPPED)
        return damaged(code_root_name, "it is neither pinned nor mapped");
    found->objects = reinterpret_cast<const code_object *>(found->head + 1);
    found->count = found->head->count;
    for (uint64_t n = 0; n < found->count; ++n)
        if (!is_sound(found->objects[n]))
            return damaged(code_root_name, "an object in it is impossible");
    if (ty_status status = find_block(heap, symbols_root_name, symbols_magic, sizeof(code_table), &found->symbols_head))
        return status;
    if (ty_status status = found->symbols_head ? check_symbols(found) : TY_OK)
        return status;
    if (ty_status status =
            find_block(heap, numbers_root_name, numbers_magic, sizeof(code_number), &found->numbers_head))
        return status;
    if (found->numbers_head) {
        found->numbers = reinterpret_cast<const code_number *>(found->numbers_head + 1);
        found->number_count = found->numbers_head->count;
    }
    return TY_OK;
}

ty_status objects_of_process(os::array<os::loaded_object> *objects) {
    auto add = [](void *context, const os::loaded_object &object) {
        return static_cast<os::array<os::loaded_object> *>(context)->push(object);
    };
    return os::each_loaded_object(add, objects);
}

code_build build_of(const os::loaded_object &object) {
    return build_from(object.build, object.build_bytes);
}

ty_status make_objects_block(ty_code binding, const os::array<os::loaded_object> &objects, os::array<char> *block) {
    const code_head head{};
    if (ty_status status = append(block, &head, 1))
        return status;
    for (const os::loaded_object &object : objects) {
        code_object kept{object.load, object.begin, object.end, flags_of(object), build_of(object), {}};
        static_assert(sizeof kept.name == sizeof object.name);
        memcpy(kept.name, object.name, sizeof kept.name);
        if (ty_status status = append(block, &kept, 1))
            return status;
    }
    seal(block, code_magic, binding, objects.count());
    return TY_OK;
}

// For a block that was just created, so that it needs no checks.
void view_symbols(const os::array<char> &block, code_record *record) {
    record->symbols_head = reinterpret_cast<const code_head *>(block.begin());
    record->tables = reinterpret_cast<const code_table *>(record->symbols_head + 1);
    record->table_count = record->symbols_head->count;
    record->symbols = reinterpret_cast<const code_symbol *>(record->tables + record->table_count);
}

ty_status make_symbols_block(const os::array<os::loaded_object> &objects, const code_record &before,
                             os::array<char> *block) {
    collecting all;
    for (const os::loaded_object &object : objects)
        if (ty_status status = add_object(object, before, all))
            return status;
    const size_t names_at =
        sizeof(code_head) + all.tables.count() * sizeof(code_table) + all.symbols.count() * sizeof(code_symbol);
    if (names_at > UINT32_MAX / 2)
        return failure(TY_E_MEMORY, "keep a program's symbols: there are more than 2 GiB")
            .remedy("strip the program, or make the heap with TY_CODE_PINNED");
    for (code_symbol &symbol : all.symbols)
        symbol.name += uint32_t(names_at); // still below code_own
    const code_head head{};
    if (ty_status status = append(block, &head, 1))
        return status;
    if (ty_status status = append(block, all.tables.begin(), all.tables.count()))
        return status;
    if (ty_status status = append(block, all.symbols.begin(), all.symbols.count()))
        return status;
    const char end = '\0'; // even if there are no names
    if (ty_status status = append(block, all.names.begin(), all.names.count()))
        return status;
    if (ty_status status = append(block, &end, 1))
        return status;
    seal(block, symbols_magic, TY_CODE_MAPPED, all.tables.count());
    return TY_OK;
}

ty_status make_numbers_block(const os::array<code_number> &numbers, os::array<char> *block) {
    const code_head head{};
    if (ty_status status = append(block, &head, 1))
        return status;
    if (ty_status status = append(block, numbers.begin(), numbers.count()))
        return status;
    seal(block, numbers_magic, TY_CODE_MAPPED, numbers.count());
    return TY_OK;
}

} // namespace taiyen
