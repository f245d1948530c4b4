package approval

import (
	"encoding/json"
	"time"

	"github.com/jig-run/jig"
)

// Similar is an earlier decision about another call of the same tool.
type Similar struct {
	SessionID string
	Call      string
	Answer    jig.Answer
	By        string
	At        time.Time
	// Input is the call's input, as it was changed if an approval changed it.
	Input json.RawMessage
}
