package server

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Requests may name the public address of the server, with and without its usual port, or this machine if there is none.
func TestHosts_AreChecked(t *testing.T) {
	t.Parallel()
	for public, want := range map[string][]string{
		"":                              {"127.0.0.1:8480", "localhost:8480", "[::1]:8480"},
		"https://jig.example.com":       {"jig.example.com", "jig.example.com:443"},
		"http://Jig.Example.com/":       {"jig.example.com", "jig.example.com:80"},
		"https://jig.example.com:8443":  {"jig.example.com:8443"},
		"https://[2001:db8::1]:8443":    {"[2001:db8::1]:8443"},
		"https://xn--bcher-kva.example": {"xn--bcher-kva.example", "xn--bcher-kva.example:443"},
	} {
		require.Equal(t, want, Settings{PublicURL: public}.hosts("8480"), public)
	}
}
