package jig

// MessageKey returns the key under which a session stores a message whose id the sender chose, so that it is stored only once.
func MessageKey(id string) string { return "message:" + id }
