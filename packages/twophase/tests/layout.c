/* Goal: as tests/api/layout.c, of distributed.h, outbox.h and xa.h. */
#include "tests/layout.h"

#include <taiyen/distributed.h>
#include <taiyen/outbox.h>
#include <taiyen/xa.h>

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

IS(TY_DECIDED_BY_HEAPS, 1);
IS(TY_DECIDED_BY_FIRST_HEAP, 2);
IS(TY_DECIDED_BY_LAST_AGENT, 3);
IS(TY_OUTBOX_NAME_MAX, 32);
IS(TY_SOURCE_NAME_MAX, 63);
IS(TY_INBOX_SOURCES_MAX, 16384);
IS(TY_MESSAGE_BYTES_MAX, 1048576);
IS(TY_MESSAGE_NEW, 1);
IS(TY_MESSAGE_DOUBLE, 2);
IS(TY_MESSAGE_GAP, 3);
