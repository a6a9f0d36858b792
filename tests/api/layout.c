/* Goal: what programs were compiled with stays as it is while the soname does (docs/versions.md): sizes and places of
 * the public structs' members, and the values of constants. A line here that no longer compiles says that the soname
 * must change; a struct with struct_size may grow at its end, and then its SIZE is mended here. Method: each is written
 * down.
 */
#include <stddef.h>
#include <taiyen/rescue.h>
#include <taiyen/taiyen.h>
#include <taiyen/xa.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size: see docs/versions.md")
#define AT(type, member, place)                                                                                        \
    _Static_assert(offsetof(type, member) == (place), #type "." #member " has moved: see docs/versions.md")
#define IS(constant, value) _Static_assert((constant) == (value), #constant " has another value: see docs/versions.md")

SIZE(ty_site, 24);
AT(ty_site, frames, 0);
AT(ty_site, frame_count, 8);
AT(ty_site, thread, 16);

SIZE(ty_finding, 120);
AT(ty_finding, struct_size, 0);
AT(ty_finding, kind, 8);
AT(ty_finding, heap, 16);
AT(ty_finding, address, 24);
AT(ty_finding, block, 32);
AT(ty_finding, size_bytes, 40);
AT(ty_finding, block_count, 48);
AT(ty_finding, total_bytes, 56);
AT(ty_finding, allocated, 64);
AT(ty_finding, freed, 88);
AT(ty_finding, text, 112);

SIZE(ty_check_options, 40);
AT(ty_check_options, struct_size, 0);
AT(ty_check_options, checks, 8);
AT(ty_check_options, sample_every, 12);
AT(ty_check_options, quarantine_bytes, 16);
AT(ty_check_options, found, 24);
AT(ty_check_options, found_context, 32);

SIZE(ty_site_use, 72);
AT(ty_site_use, struct_size, 0);
AT(ty_site_use, site, 8);
AT(ty_site_use, block_count, 32);
AT(ty_site_use, total_bytes, 40);
AT(ty_site_use, block, 48);
AT(ty_site_use, size_bytes, 56);
AT(ty_site_use, text, 64);

SIZE(ty_atomic_options, 16);
AT(ty_atomic_options, struct_size, 0);
AT(ty_atomic_options, commit, 8);
AT(ty_atomic_options, reads_only, 12);
AT(ty_atomic_options, irrevocable, 13);

SIZE(ty_atomic_result, 32);
AT(ty_atomic_result, struct_size, 0);
AT(ty_atomic_result, committed, 8);
AT(ty_atomic_result, stamp, 16);
AT(ty_atomic_result, runs, 24);

SIZE(ty_atomic_stats, 96);
AT(ty_atomic_stats, struct_size, 0);
AT(ty_atomic_stats, commits, 8);
AT(ty_atomic_stats, conflicts_locked, 16);
AT(ty_atomic_stats, conflicts_changed, 24);
AT(ty_atomic_stats, conflicts_alone, 32);
AT(ty_atomic_stats, conflicts_forgotten, 40);
AT(ty_atomic_stats, alone, 48);
AT(ty_atomic_stats, old_readers, 56);
AT(ty_atomic_stats, records, 64);
AT(ty_atomic_stats, record_bytes, 72);
AT(ty_atomic_stats, snapshot_waits, 80);
AT(ty_atomic_stats, longest_snapshot_wait_ns, 88);

SIZE(ty_heap_options, 48);
AT(ty_heap_options, struct_size, 0);
AT(ty_heap_options, limit_bytes, 8);
AT(ty_heap_options, base, 16);
AT(ty_heap_options, classes, 24);
AT(ty_heap_options, numa_nodes, 32);
AT(ty_heap_options, concurrent, 40);

SIZE(ty_block, 16);
AT(ty_block, address, 0);
AT(ty_block, size_bytes, 8);

SIZE(ty_area, 56);
AT(ty_area, kind, 0);
AT(ty_area, address, 8);
AT(ty_area, size_bytes, 16);
AT(ty_area, block_size_bytes, 24);
AT(ty_area, block_count, 32);
AT(ty_area, live_count, 40);
AT(ty_area, live, 48);

SIZE(ty_size_class, 16);
AT(ty_size_class, span_bytes, 8);

SIZE(ty_heap_stats, 112);
AT(ty_heap_stats, struct_size, 0);
AT(ty_heap_stats, base, 8);
AT(ty_heap_stats, limit_bytes, 16);
AT(ty_heap_stats, touched_bytes, 24);
AT(ty_heap_stats, live_blocks, 32);
AT(ty_heap_stats, live_bytes, 40);
AT(ty_heap_stats, control_bytes, 48);
AT(ty_heap_stats, resident_bytes, 56);
AT(ty_heap_stats, free_runs, 64);
AT(ty_heap_stats, free_bytes, 72);
AT(ty_heap_stats, largest_free_bytes, 80);
AT(ty_heap_stats, availability, 88);
AT(ty_heap_stats, page_efficiency, 96);
AT(ty_heap_stats, used_bytes, 104);

SIZE(ty_class_stats, 56);
AT(ty_class_stats, struct_size, 0);
AT(ty_class_stats, block_bytes, 8);
AT(ty_class_stats, spans, 16);
AT(ty_class_stats, span_bytes, 24);
AT(ty_class_stats, block_count, 32);
AT(ty_class_stats, live_blocks, 40);
AT(ty_class_stats, live_bytes, 48);

SIZE(ty_thread_stats, 40);
AT(ty_thread_stats, struct_size, 0);
AT(ty_thread_stats, thread, 8);
AT(ty_thread_stats, spans, 16);
AT(ty_thread_stats, span_bytes, 24);
AT(ty_thread_stats, free_bytes, 32);

SIZE(ty_heap_limits, 40);
AT(ty_heap_limits, struct_size, 0);
AT(ty_heap_limits, soft_bytes, 8);
AT(ty_heap_limits, hard_bytes, 16);
AT(ty_heap_limits, reached, 24);
AT(ty_heap_limits, context, 32);

SIZE(ty_log_sink, 56);
AT(ty_log_sink, struct_size, 0);
AT(ty_log_sink, context, 8);
AT(ty_log_sink, block_bytes, 16);
AT(ty_log_sink, size_bytes, 24);
AT(ty_log_sink, read, 32);
AT(ty_log_sink, write, 40);
AT(ty_log_sink, close, 48);

SIZE(ty_memory_log_options, 16);
AT(ty_memory_log_options, struct_size, 0);
AT(ty_memory_log_options, write_back, 8);
AT(ty_memory_log_options, write_latency_ns, 12);

SIZE(ty_log_partition, 32);
AT(ty_log_partition, start_position, 0);
AT(ty_log_partition, end_position, 8);
AT(ty_log_partition, transactions, 16);
AT(ty_log_partition, record_bytes, 24);

SIZE(ty_rescue_report, 120);
AT(ty_rescue_report, struct_size, 0);
AT(ty_rescue_report, kind, 8);
AT(ty_rescue_report, base, 16);
AT(ty_rescue_report, limit_bytes, 24);
AT(ty_rescue_report, header_doubtful, 32);
AT(ty_rescue_report, image_epoch, 40);
AT(ty_rescue_report, epoch, 48);
AT(ty_rescue_report, durable_epoch, 56);
AT(ty_rescue_report, batches, 64);
AT(ty_rescue_report, batch_pages, 72);
AT(ty_rescue_report, pages, 80);
AT(ty_rescue_report, damaged_pages, 88);
AT(ty_rescue_report, missing_pages, 96);
AT(ty_rescue_report, problems, 104);
AT(ty_rescue_report, unchecked_pages, 112);

SIZE(ty_log_info, 416);
AT(ty_log_info, struct_size, 0);
AT(ty_log_info, format_version, 8);
AT(ty_log_info, heap_identity, 12);
AT(ty_log_info, log_identity, 32);
AT(ty_log_info, size_bytes, 40);
AT(ty_log_info, block_bytes, 48);
AT(ty_log_info, of_heap, 52);
AT(ty_log_info, start_position, 56);
AT(ty_log_info, end_position, 64);
AT(ty_log_info, first_sequence, 72);
AT(ty_log_info, transactions, 80);
AT(ty_log_info, frames, 88);
AT(ty_log_info, record_bytes, 96);
AT(ty_log_info, data_entries, 104);
AT(ty_log_info, changed_bytes, 112);
AT(ty_log_info, operations, 120);
AT(ty_log_info, procedures, 128);
AT(ty_log_info, partitions, 136);
AT(ty_log_info, left_out, 144);
AT(ty_log_info, in_partition, 152);
AT(ty_log_info, in_doubt, 408);

SIZE(ty_message, 32);
AT(ty_message, source, 0);
AT(ty_message, number, 8);
AT(ty_message, bytes, 16);
AT(ty_message, size_bytes, 24);

SIZE(ty_outbox_info, 80);
AT(ty_outbox_info, struct_size, 0);
AT(ty_outbox_info, source, 8);
AT(ty_outbox_info, first, 48);
AT(ty_outbox_info, next, 56);
AT(ty_outbox_info, used_bytes, 64);
AT(ty_outbox_info, size_bytes, 72);

SIZE(XID, 152);
AT(XID, gtrid_length, 8);
AT(XID, bqual_length, 16);
AT(XID, data, 24);

SIZE(struct xa_switch_t, 128);
AT(struct xa_switch_t, flags, 32);
AT(struct xa_switch_t, version, 40);
AT(struct xa_switch_t, xa_open_entry, 48);
AT(struct xa_switch_t, xa_complete_entry, 120);

SIZE(ty_follow_options, 24);
AT(ty_follow_options, struct_size, 0);
AT(ty_follow_options, open, 8);
AT(ty_follow_options, heap, 16);

SIZE(ty_follow_position, 280);
AT(ty_follow_position, heap_identity, 0);
AT(ty_follow_position, log_identity, 16);
AT(ty_follow_position, sequence, 24);
AT(ty_follow_position, epoch, 32);
AT(ty_follow_position, hash, 40);
AT(ty_follow_position, previous, 48);
AT(ty_follow_position, open_number, 56);
AT(ty_follow_position, open_random, 64);
AT(ty_follow_position, has_record, 72);
AT(ty_follow_position, partitions, 76);
AT(ty_follow_position, place, 80);
AT(ty_follow_position, checksum, 272);

SIZE(ty_follow_record, 40);
AT(ty_follow_record, sequence, 0);
AT(ty_follow_record, previous, 8);
AT(ty_follow_record, hash, 16);
AT(ty_follow_record, bytes, 24);
AT(ty_follow_record, size_bytes, 32);

SIZE(ty_receive_options, 32);
AT(ty_receive_options, struct_size, 0);
AT(ty_receive_options, copied_sequence, 8);
AT(ty_receive_options, base, 16);
AT(ty_receive_options, unlogged, 24);

SIZE(ty_log_entry, 56);
AT(ty_log_entry, kind, 0);
AT(ty_log_entry, partition, 4);
AT(ty_log_entry, marked, 6);
AT(ty_log_entry, sequence, 8);
AT(ty_log_entry, position, 16);
AT(ty_log_entry, address, 24);
AT(ty_log_entry, size_bytes, 32);
AT(ty_log_entry, procedure, 40);
AT(ty_log_entry, bytes, 48);

SIZE(ty_open_options, 184);
AT(ty_open_options, struct_size, 0);
AT(ty_open_options, mode, 8);
AT(ty_open_options, kind, 12);
AT(ty_open_options, limit_bytes, 16);
AT(ty_open_options, base, 24);
AT(ty_open_options, classes, 32);
AT(ty_open_options, journal_path, 40);
AT(ty_open_options, storage, 48);
AT(ty_open_options, tracking, 56);
AT(ty_open_options, background, 60);
AT(ty_open_options, staging_bytes, 64);
AT(ty_open_options, journal_limit_bytes, 72);
AT(ty_open_options, log_path, 80);
AT(ty_open_options, log_bytes, 88);
AT(ty_open_options, log, 96);
AT(ty_open_options, automatic, 104);
AT(ty_open_options, check_stores, 105);
AT(ty_open_options, stray_store, 112);
AT(ty_open_options, stray_store_context, 120);
AT(ty_open_options, snapshot_dirty_bytes, 128);
AT(ty_open_options, snapshot_interval_ms, 136);
AT(ty_open_options, memory_bytes, 144);
AT(ty_open_options, log_partitions, 152);
AT(ty_open_options, concurrent, 156);
AT(ty_open_options, outcome, 160);
AT(ty_open_options, outcome_context, 168);
AT(ty_open_options, code, 176);

SIZE(ty_doubt, 64);
AT(ty_doubt, struct_size, 0);
AT(ty_doubt, heap_path, 8);
AT(ty_doubt, heap_identity, 16);
AT(ty_doubt, sequence, 32);
AT(ty_doubt, description, 40);
AT(ty_doubt, description_bytes, 48);
AT(ty_doubt, durable, 56);

SIZE(ty_code_word, 56);
AT(ty_code_word, address, 8);
AT(ty_code_word, value, 16);
AT(ty_code_word, block, 24);
AT(ty_code_word, block_bytes, 32);
AT(ty_code_word, object, 40);
AT(ty_code_word, offset, 48);

SIZE(ty_report, 392);
AT(ty_report, struct_size, 0);
AT(ty_report, kind, 8);
AT(ty_report, found, 12);
AT(ty_report, created, 16);
AT(ty_report, attached, 17);
AT(ty_report, raised, 18);
AT(ty_report, header_repaired, 19);
AT(ty_report, journal_recreated, 20);
AT(ty_report, maybe_inconsistent, 21);
AT(ty_report, tracking, 24);
AT(ty_report, epoch, 32);
AT(ty_report, image_epoch, 40);
AT(ty_report, batches_restored, 48);
AT(ty_report, pages_restored, 56);
AT(ty_report, batches_discarded, 64);
AT(ty_report, duration_ns, 72);
AT(ty_report, text, 80);
AT(ty_report, log_attached, 336);
AT(ty_report, log_detached, 337);
AT(ty_report, log_recreated, 338);
AT(ty_report, replayed_transactions, 344);
AT(ty_report, replayed_bytes, 352);
AT(ty_report, sequence, 360);
AT(ty_report, in_doubt, 368);
AT(ty_report, outcome, 376);
AT(ty_report, code, 380);
AT(ty_report, code_words, 384);

SIZE(ty_info, 408);
AT(ty_info, struct_size, 0);
AT(ty_info, kind, 8);
AT(ty_info, format_version, 12);
AT(ty_info, identity, 16);
AT(ty_info, base, 32);
AT(ty_info, limit_bytes, 40);
AT(ty_info, page_bytes, 48);
AT(ty_info, classes, 52);
AT(ty_info, image_epoch, 56);
AT(ty_info, epoch, 64);
AT(ty_info, batches, 72);
AT(ty_info, batch_pages, 80);
AT(ty_info, closed, 88);
AT(ty_info, in_use, 89);
AT(ty_info, image_bytes, 96);
AT(ty_info, journal_bytes, 104);
AT(ty_info, created_unix_s, 112);
AT(ty_info, found, 120);
AT(ty_info, open_text, 124);
AT(ty_info, log_identity, 384);
AT(ty_info, log_position, 392);
AT(ty_info, log_sequence, 400);

SIZE(ty_snapshot_stats, 88);
AT(ty_snapshot_stats, struct_size, 0);
AT(ty_snapshot_stats, snapshots, 8);
AT(ty_snapshot_stats, pages, 16);
AT(ty_snapshot_stats, journal_bytes, 24);
AT(ty_snapshot_stats, image_bytes, 32);
AT(ty_snapshot_stats, last_pause_ns, 40);
AT(ty_snapshot_stats, last_durable_ns, 48);
AT(ty_snapshot_stats, last_bytes, 56);
AT(ty_snapshot_stats, unapplied_batches, 64);
AT(ty_snapshot_stats, unapplied_bytes, 72);
AT(ty_snapshot_stats, pages_given_back, 80);

SIZE(ty_error, 624);
AT(ty_error, status, 0);
AT(ty_error, system_error, 4);
AT(ty_error, offset, 8);
AT(ty_error, operation, 16);
AT(ty_error, path, 112);
AT(ty_error, remedy, 368);

SIZE(ty_write, 24);
AT(ty_write, offset, 0);
AT(ty_write, buffer, 8);
AT(ty_write, bytes, 16);

SIZE(ty_storage, 200);
AT(ty_storage, struct_size, 0);
AT(ty_storage, context, 8);
AT(ty_storage, open, 16);
AT(ty_storage, close, 24);
AT(ty_storage, read, 32);
AT(ty_storage, write, 40);
AT(ty_storage, flush, 48);
AT(ty_storage, get_size, 56);
AT(ty_storage, set_size, 64);
AT(ty_storage, allocate, 72);
AT(ty_storage, punch, 80);
AT(ty_storage, next_data, 88);
AT(ty_storage, map, 96);
AT(ty_storage, unmap, 104);
AT(ty_storage, write_back, 112);
AT(ty_storage, lock, 120);
AT(ty_storage, rename, 128);
AT(ty_storage, remove, 136);
AT(ty_storage, flush_directory, 144);
AT(ty_storage, write_many, 152);
AT(ty_storage, write_durable, 160);
AT(ty_storage, check, 168);
AT(ty_storage, protect, 176);
AT(ty_storage, resolve, 184);
AT(ty_storage, hold, 192);

SIZE(ty_txn_options, 16);
AT(ty_txn_options, struct_size, 0);
AT(ty_txn_options, stores, 8);
AT(ty_txn_options, no_wait, 12);
AT(ty_txn_options, free_later, 13);

SIZE(ty_stray_store, 48);
AT(ty_stray_store, address, 0);
AT(ty_stray_store, bytes, 8);
AT(ty_stray_store, block, 16);
AT(ty_stray_store, in_transaction, 32);
AT(ty_stray_store, instruction, 40);

SIZE(ty_txn_stats, 144);
AT(ty_txn_stats, struct_size, 0);
AT(ty_txn_stats, transactions, 8);
AT(ty_txn_stats, rollbacks, 16);
AT(ty_txn_stats, entries, 24);
AT(ty_txn_stats, record_bytes, 32);
AT(ty_txn_stats, log_bytes, 40);
AT(ty_txn_stats, log_frames, 48);
AT(ty_txn_stats, used_log_bytes, 56);
AT(ty_txn_stats, size_log_bytes, 64);
AT(ty_txn_stats, forced_snapshots, 72);
AT(ty_txn_stats, timed_snapshots, 80);
AT(ty_txn_stats, snapshot_pages, 88);
AT(ty_txn_stats, sequence, 96);
AT(ty_txn_stats, stable_sequence, 104);
AT(ty_txn_stats, replayed_transactions, 112);
AT(ty_txn_stats, replayed_bytes, 120);
AT(ty_txn_stats, replay_ns, 128);
AT(ty_txn_stats, reserved_blocks, 136);

SIZE(ty_undo_options, 48);
AT(ty_undo_options, struct_size, 0);
AT(ty_undo_options, undo_bytes, 8);
AT(ty_undo_options, redo_bytes, 16);
AT(ty_undo_options, entries, 24);
AT(ty_undo_options, held_bytes, 32);
AT(ty_undo_options, volatile_buffers, 40);
AT(ty_undo_options, fixed, 41);

SIZE(ty_undo_step, 40);
AT(ty_undo_step, label, 0);
AT(ty_undo_step, time_unix_ns, 8);
AT(ty_undo_step, entries, 16);
AT(ty_undo_step, bytes, 24);
AT(ty_undo_step, undone, 32);

SIZE(ty_undo_stats, 112);
AT(ty_undo_stats, struct_size, 0);
AT(ty_undo_stats, undoable, 8);
AT(ty_undo_stats, redoable, 16);
AT(ty_undo_stats, undo_bytes, 24);
AT(ty_undo_stats, undo_size, 32);
AT(ty_undo_stats, redo_bytes, 40);
AT(ty_undo_stats, redo_size, 48);
AT(ty_undo_stats, undo_entries, 56);
AT(ty_undo_stats, redo_entries, 64);
AT(ty_undo_stats, size_entries, 72);
AT(ty_undo_stats, held_blocks, 80);
AT(ty_undo_stats, held_bytes, 88);
AT(ty_undo_stats, forgotten, 96);
AT(ty_undo_stats, reattached, 104);
AT(ty_undo_stats, lost_volatile, 105);
AT(ty_undo_stats, open, 106);
AT(ty_undo_stats, full, 107);
AT(ty_undo_stats, cycle, 108);
AT(ty_undo_stats, off, 109);

IS(TY_COMMIT_SYNC, 0);
IS(TY_COMMIT_ASYNC, 1);
IS(TY_COMMIT_PARTITION, 2);

IS(TY_FINDING_WRITE_BEFORE, 1);
IS(TY_FINDING_WRITE_BEHIND, 2);
IS(TY_FINDING_WRITE_FREED, 3);
IS(TY_FINDING_FREED_TWICE, 4);
IS(TY_FINDING_INTERIOR_FREE, 5);
IS(TY_FINDING_WILD_FREE, 6);
IS(TY_FINDING_ACCESS, 7);
IS(TY_FINDING_LEAK, 8);
IS(TY_CHECK_BOUNDS, 1);
IS(TY_CHECK_GUARD_PAGES, 2);
IS(TY_CHECK_FREED, 4);
IS(TY_CHECK_SITES, 8);
IS(TY_CHECK_LEAKS, 16);
IS(TY_CLASSES_LINE, 0);
IS(TY_CLASSES_PACKED, 1);
IS(TY_AREA_FREE, 0);
IS(TY_AREA_SPAN, 1);
IS(TY_AREA_RUN, 2);
IS(TY_AREA_CONTROL, 3);
IS(TY_LOG_TRANSACTION, 0);
IS(TY_LOG_DATA, 1);
IS(TY_LOG_ALLOC, 2);
IS(TY_LOG_FREE, 3);
IS(TY_LOG_RESIZE, 4);
IS(TY_LOG_ROOT, 5);
IS(TY_LOG_PROCEDURE, 6);
IS(TY_LOG_PREPARED, 7);
IS(TY_LOG_OUTCOME, 8);
IS(TY_OUTCOME_UNKNOWN, 0);
IS(TY_OUTCOME_COMMIT, 1);
IS(TY_OUTCOME_ROLLBACK, 2);
IS(TY_DECIDED_BY_HEAPS, 1);
IS(TY_DECIDED_BY_FIRST_HEAP, 2);
IS(TY_DECIDED_BY_AGENT, 3);
IS(TY_E_IN_DOUBT, 15);
IS(TY_KIND_DEFAULT, 0);
IS(TY_VOLATILE, 1);
IS(TY_ARCHIVE, 2);
IS(TY_SNAPSHOT, 3);
IS(TY_TRANSACTIONAL, 4);
IS(TY_OPEN_OR_CREATE, 0);
IS(TY_OPEN_EXISTING, 1);
IS(TY_CREATE_NEW, 2);
IS(TY_OPEN_READ_ONLY, 3);
IS(TY_OPEN_COPY, 4);
IS(TY_CODE_DEFAULT, 0);
IS(TY_CODE_PINNED, 1);
IS(TY_CODE_MAPPED, 2);
IS(TY_CODE_COMPATIBLE, 3);
IS(TY_CODE_IGNORED, 4);
IS(TY_TRACK_AUTOMATIC, 0);
IS(TY_TRACK_KERNEL, 1);
IS(TY_TRACK_SIGNAL, 2);
IS(TY_TRACK_CONTENT, 3);
IS(TY_BACKGROUND_THREAD, 0);
IS(TY_BACKGROUND_CALLS, 1);
IS(TY_FOUND_NOTHING, 0);
IS(TY_FOUND_CLOSED, 1);
IS(TY_FOUND_CLOSED_BATCHES, 2);
IS(TY_FOUND_DIED, 3);
IS(TY_FOUND_DIED_WRITING, 4);
IS(TY_FOUND_DIED_APPLYING, 5);
IS(TY_FOUND_IN_USE, 6);
IS(TY_OK, 0);
IS(TY_E_ARGUMENT, 1);
IS(TY_E_MEMORY, 2);
IS(TY_E_SPACE, 3);
IS(TY_E_IO, 4);
IS(TY_E_NOT_FOUND, 5);
IS(TY_E_EXISTS, 6);
IS(TY_E_BUSY, 7);
IS(TY_E_PERMISSION, 8);
IS(TY_E_ADDRESS, 9);
IS(TY_E_FORMAT, 10);
IS(TY_E_DAMAGED, 11);
IS(TY_E_MISMATCH, 12);
IS(TY_E_UNSUPPORTED, 13);
IS(TY_E_FORKED, 14);
IS(TY_STORES_DEFAULT, 0);
IS(TY_STORES_DECLARED, 1);
IS(TY_STORES_AUTOMATIC, 2);
IS(TY_LOG_BYTES_MIN, 1048576);
IS(TY_LOG_PARTITIONS_MAX, 8);
IS(TY_ROOT_NAME_MAX, 47);
IS(TY_ROOT_COUNT_MAX, 63);
IS(TY_STORAGE_BLOCK, 4096);
IS(TY_OPEN_WRITE, 1);
IS(TY_OPEN_CREATE, 2);
IS(TY_OPEN_PRIVATE, 4);
IS(TY_MAP_WRITE, 1);
IS(TY_MAP_SHARED, 2);
IS(TY_STORAGE_PATH_MAX, 4096);
IS(TY_UNDO_LABEL_MAX, 47);
IS(TY_OUTBOX_NAME_MAX, 32);
IS(TY_SOURCE_NAME_MAX, 63);
IS(TY_INBOX_SOURCES_MAX, 16384);
IS(TY_MESSAGE_BYTES_MAX, 1048576);
IS(TY_MESSAGE_NEW, 1);
IS(TY_MESSAGE_DOUBLE, 2);
IS(TY_MESSAGE_GAP, 3);
