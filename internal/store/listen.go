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

// listenerLock is the key of the advisory lock that each listening connection holds, shared, so that announcers know that somebody
// listens. PostgreSQL releases it when the connection ends.
const listenerLock = 7106935

// listenedFor is how long the answer that another process listens counts.
const listenedFor = 2 * time.Second

// notify announces the commits of this process. While another process listens, it does so immediately after a quiet period, else every
// Options.NotifyEvery. While nobody does, it asks every Options.AskEvery, if there was a commit, and announces nothing.
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
		pause(ctx, h.announceAll(ctx))
	}
}

// announceAll announces what is waiting, and returns how long to wait until the next time. If no process listens, nothing is lost by not
// announcing: a process reads what was committed after it has started to listen.
func (h *hub) announceAll(ctx context.Context) time.Duration {
	h.mu.Lock()
	waiting := h.announce
	h.announce = map[topicKey]int64{}
	h.mu.Unlock()
	if len(waiting) == 0 {
		return h.db.options.NotifyEvery
	}
	listened, err := h.listened(ctx)
	if err == nil && listened {
		err = h.db.once(ctx, "", func(t *tx) {
			for _, payload := range payloads(waiting) {
				t.queue("Notify", payload)
			}
		})
	}
	switch {
	case err != nil:
		h.announceLater(waiting) // also if the store is closing, because it announces once more
		if ctx.Err() == nil {
			h.db.options.Logger.WarnContext(ctx, "announcing new events failed", slog.Any("error", err))
		}
		return h.retryEvery()
	case listened:
		return h.db.options.NotifyEvery
	default:
		return h.db.options.AskEvery
	}
}

// retryEvery is the time after which the hub tries again what has failed.
func (h *hub) retryEvery() time.Duration { return min(h.db.options.PollEvery, time.Second) }

// announceLater puts back what could not be announced.
func (h *hub) announceLater(waiting map[topicKey]int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, seq := range waiting {
		h.announce[key] = max(h.announce[key], seq)
	}
	trySend(h.send)
}

// listened reports whether another process listens. The watchers of this process hear of its commits without announcements.
func (h *hub) listened(ctx context.Context) (bool, error) {
	if time.Now().Before(h.listenedUntil) {
		return true, nil
	}
	for {
		var found *bool
		own := h.pid.Load()
		err := h.db.once(ctx, "", func(t *tx) { value(t.queue("Listened", listenerLock, int(own)), &found) })
		switch {
		case err != nil || found == nil || !*found:
			return false, err
		case own == h.pid.Load():
			h.listenedUntil = time.Now().Add(listenedFor)
			return true, nil
		}
		// This process has begun to listen in the meantime, so the lock may be its own.
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

func (h *hub) receivePayload(payload string) {
	for line := range strings.Lines(payload) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // not one of our payloads
		}
		tenant, err1 := url.QueryUnescape(fields[0])
		session, err2 := url.QueryUnescape(fields[1])
		seq, err3 := strconv.ParseInt(fields[2], 10, 64)
		if err1 == nil && err2 == nil && err3 == nil {
			h.advanced(topicKey{tenant, session}, seq)
		}
	}
}

// listen keeps one connection listening while somebody watches, and for Options.ListenIdle afterwards.
func (h *hub) listen(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wanted:
		}
		if !h.watched() {
			continue // the watcher has left, or this is the request of one that was served already
		}
		for ctx.Err() == nil {
			err := h.listenOnce(ctx)
			if err == nil {
				break // nobody has watched for long
			}
			if ctx.Err() == nil {
				h.db.options.Logger.WarnContext(ctx, "listening for events was interrupted", slog.Any("error", err))
				pause(ctx, h.retryEvery())
			}
			if h.retire() {
				break
			}
		}
	}
}

// listenOnce listens with a new connection until it breaks or retires.
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
	h.pid.Store(conn.PgConn().PID())
	// The lock comes before listening, and reading what was committed comes after it: an announcer that does not see the lock has
	// committed before.
	for _, statement := range []string{"select pg_advisory_lock_shared(" + strconv.Itoa(listenerLock) + ")", "listen jig_events", "listen jig_text"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return h.db.translate(err)
		}
	}
	h.texts.board.Forget() // pieces may have been missed
	h.listens()
	if err := h.readSeqs(ctx); err != nil {
		return err
	}
	held := map[int]bool{}
	for !h.retire() {
		if err := h.hearOne(ctx, conn, held); err != nil {
			return h.db.translate(err)
		}
	}
	return nil
}

// hearOne waits for an announcement, for Options.ListenIdle at most. held are the groups of sessions whose texts the connection asks for.
func (h *hub) hearOne(ctx context.Context, conn *pgx.Conn, held map[int]bool) error {
	waiting, cancel := context.WithTimeout(ctx, h.db.options.ListenIdle)
	defer cancel()
	if err := h.holdTextLocks(ctx, conn, held, cancel); err != nil {
		return err
	}
	n, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil && n.Channel == "jig_text":
		h.receiveText(n.Payload)
		return nil
	case err == nil:
		h.receivePayload(n.Payload)
		return nil
	case waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed():
		return nil // nothing was announced; the connection is still good
	default:
		return err //nolint:wrapcheck // translated by the caller
	}
}

// poll checks every watched session regularly.
func (h *hub) poll(ctx context.Context) {
	for pause(ctx, h.db.options.PollEvery) {
		if err := h.readSeqs(ctx); err != nil && ctx.Err() == nil {
			h.db.options.Logger.WarnContext(ctx, "looking for new events failed", slog.Any("error", err))
		}
	}
}

// lastSeqRow is a row of the query LastSeqs.
type lastSeqRow struct {
	TenantID  string
	SessionID string
	LastSeq   int64
}

// readSeqs finds out which of the watched sessions have new events.
func (h *hub) readSeqs(ctx context.Context) error {
	var tenants, sessions []string
	h.mu.Lock()
	for key := range h.topics {
		tenants, sessions = append(tenants, key.tenant), append(sessions, key.session)
	}
	for tenant := range h.tenants {
		h.wakeTenant(tenant)
	}
	h.mu.Unlock()
	if len(tenants) == 0 {
		return nil
	}
	var rows []lastSeqRow
	err := h.db.once(ctx, "", func(t *tx) { list(t.queue("LastSeqs", tenants, sessions), &rows) })
	for _, r := range rows {
		h.advanced(topicKey{r.TenantID, r.SessionID}, r.LastSeq)
	}
	return err
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
				pause(ctx, h.retryEvery())
			}
		}
	}
}

// due is a topic with the sequence numbers up to which it had been read, and that were known, when it was taken.
type due struct {
	topic       *topic
	from, known int64
}

func (h *hub) takeDirty() map[string][]due {
	h.mu.Lock()
	defer h.mu.Unlock()
	byTenant := map[string][]due{}
	for t := range h.dirty {
		if t.known > t.seen {
			byTenant[t.key.tenant] = append(byTenant[t.key.tenant], due{t, t.seen, t.known})
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
	trySend(h.fetch)
}

func (h *hub) readTenant(ctx context.Context, tenant string, topics []due) error {
	sessions, after := make([]string, len(topics)), make([]int64, len(topics))
	for i, d := range topics {
		sessions[i], after[i] = d.topic.key.session, d.from
	}
	var rows []jig.Event
	err := h.db.once(ctx, tenant, func(t *tx) { list(t.queue("EventsOfSeveral", tenant, sessions, after, tailLength), &rows) })
	if err != nil {
		return err
	}
	found := map[string][]jig.Event{}
	for _, e := range rows {
		found[e.SessionID] = append(found[e.SessionID], e)
	}
	for _, d := range topics {
		h.deliver(d, found[d.topic.key.session])
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
