package protocol

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

// ToolReadRequest asks a worker to read with a built-in tool, as a principal. No session is started, and nothing is recorded.
type ToolReadRequest struct {
	Tenant    string          `json:"tenant"`
	Principal jig.Principal   `json:"principal"`
	Tool      string          `json:"tool"`
	Input     json.RawMessage `json:"input"`
}

// ToolReading holds the data that the tool returned, at most 128 KiB.
type ToolReading struct {
	Data json.RawMessage `json:"data"`
}
