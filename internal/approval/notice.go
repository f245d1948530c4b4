package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jig-run/jig"
)

// requested returns the notice that an approval was opened.
func requested(p jig.Pending) jig.Notice {
	unique := p.Digest + p.RequestedAt.UTC().Format(time.RFC3339Nano)
	return jig.Notice{ID: noticeID(p.SessionID, p.Call, jig.NoticeRequested, unique), Kind: jig.NoticeRequested, Approval: p}
}

// noticeID returns the id of a notice. It is the same however often the transaction is retried.
func noticeID(session, call string, kind jig.NoticeKind, unique string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + call + "\x00" + string(kind) + "\x00" + unique))
	return "ntc_" + hex.EncodeToString(sum[:16])
}
