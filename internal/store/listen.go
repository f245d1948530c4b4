package store

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jig-run/jig"
)

// payloadBytes is the maximum size of one notification. PostgreSQL accepts less than 8,000 bytes.
const payloadBytes = 7900

// notify announces the commits of this process: immediately after a quiet period, else every Options.NotifyEvery.
func (h *hub) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			h.announceAll(ctx)
			return
		case <-h.send:
		}
		h.announceAll(ctx)
		pause(ctx, h.db.options.NotifyEvery)
	}
}

func (h *hub) announceAll(ctx context.Context) {
	h.mu.Lock()
	waiting := h.announce
	h.announce = map[topicKey]int64{}
	h.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	err := h.db.once(ctx, "", func(t *tx) {
		for _, payload := range payloads(waiting) {
			t.queue("Notify", payload)
		}
	})
	if err != nil && ctx.Err() == nil {
		h.db.options.Logger.WarnContext(ctx, "announcing new events failed", slog.Any("error", err))
	}
}

// payloads encodes sessions and their event counters, as many as fit into each notification.
func payloads(waiting map[topicKey]int64) []string {
	var all []string
	var b strings.Builder
	for key, seq := range waiting {
		line := url.QueryEscape(key.tenant) + " " + url.QueryEscape(key.session) + " " + strconv.FormatInt(seq, 10) + "\n"
		if b.Len()+len(line) > payloadBytes {
			all = append(all, b.String())
			b.Reset()
		}
		b.WriteString(line)
	}
	return append(all, b.String())
}

func (h *hub) heardPayload(payload string) {
	for line := range strings.Lines(payload) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // not one of our payloads
		}
		tenant, err1 := url.QueryUnescape(fields[0])
		session, err2 := url.QueryUnescape(fields[1])
		seq, err3 := strconv.ParseInt(fields[2], 10, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			h.hear(topicKey{tenant, session}, seq)
		}
	}
}

// listen keeps one listening connection open, starting with the first watcher.
func (h *hub) listen(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-h.wanted:
	}
	for ctx.Err() == nil {
		if err := h.listenOnce(ctx); err != nil && ctx.Err() == nil {
			h.db.options.Logger.WarnContext(ctx, "listening for events was interrupted", slog.Any("error", err))
			pause(ctx, h.db.options.PollEvery)
		}
	}
}

func (h *hub) listenOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, h.db.pool.Config().ConnConfig)
	if err != nil {
		return h.db.translate(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "listen jig_events"); err != nil {
		return h.db.translate(err)
	}
	h.heard.Do(func() { close(h.listening) })
	h.look(ctx) // for what was committed while no connection listened
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return h.db.translate(err)
		}
		h.heardPayload(n.Payload)
	}
}

// poll checks every watched session regularly.
func (h *hub) poll(ctx context.Context) {
	for pause(ctx, h.db.options.PollEvery) {
		h.look(ctx)
	}
}

// lastSeqRow is a row of the query LastSeqs.
type lastSeqRow struct {
	TenantID  string
	SessionID string
	LastSeq   int64
}

func (h *hub) look(ctx context.Context) {
	var tenants, sessions []string
	h.mu.Lock()
	for key := range h.topics {
		tenants, sessions = append(tenants, key.tenant), append(sessions, key.session)
	}
	h.mu.Unlock()
	if len(tenants) == 0 {
		return
	}
	var rows []lastSeqRow
	err := h.db.once(ctx, "", func(t *tx) { list(t.queue("LastSeqs", tenants, sessions), &rows) })
	if err != nil && ctx.Err() == nil {
		h.db.options.Logger.WarnContext(ctx, "looking for new events failed", slog.Any("error", err))
	}
	for _, r := range rows {
		h.hear(topicKey{r.TenantID, r.SessionID}, r.LastSeq)
	}
}

// read reads the events that were announced, for all sessions of a tenant together.
func (h *hub) read(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.fetch:
		}
		for tenant, topics := range h.takeDirty() {
			if err := h.readTenant(ctx, tenant, topics); err != nil && ctx.Err() == nil {
				h.db.options.Logger.WarnContext(ctx, "reading new events failed", slog.Any("error", err))
				h.again(topics)
				pause(ctx, h.db.options.PollEvery)
			}
		}
	}
}

// due is a topic with the sequence number up to which it had been read when it was taken.
type due struct {
	topic *topic
	from  int64
}

func (h *hub) takeDirty() map[string][]due {
	h.mu.Lock()
	defer h.mu.Unlock()
	byTenant := map[string][]due{}
	for t := range h.dirty {
		if t.known > t.seen {
			byTenant[t.key.tenant] = append(byTenant[t.key.tenant], due{t, t.seen})
		}
	}
	clear(h.dirty)
	return byTenant
}

func (h *hub) again(topics []due) {
	h.mu.Lock()
	for _, d := range topics {
		if len(d.topic.watchers) > 0 {
			h.dirty[d.topic] = struct{}{}
		}
	}
	h.mu.Unlock()
	nudge(h.fetch)
}

func (h *hub) readTenant(ctx context.Context, tenant string, topics []due) error {
	sessions, after := make([]string, len(topics)), make([]int64, len(topics))
	for i, d := range topics {
		sessions[i], after[i] = d.topic.key.session, d.from
	}
	var rows []eventRow
	err := h.db.once(ctx, tenant, func(t *tx) { list(t.queue("EventsOfSeveral", tenant, sessions, after, tailLength), &rows) })
	if err != nil {
		return err
	}
	found := map[string][]jig.Event{}
	for i := range rows {
		found[rows[i].SessionID] = append(found[rows[i].SessionID], rows[i].event())
	}
	for _, d := range topics {
		h.deliver(d.topic, d.from, found[d.topic.key.session])
	}
	return nil
}

// pause waits for d. It returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
