package approval

import (
	"cmp"
	"time"
)

// GrantCeiling bounds every grant of a tenant, no matter who gives it.
type GrantCeiling struct {
	// MaxUses bounds the uses of one grant; default 1,000.
	MaxUses int `json:"max_uses,omitempty"`
	// MaxAge bounds the lifetime of one grant; default 30 days. In JSON: nanoseconds.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// Off forbids grants altogether.
	Off bool `json:"off,omitempty"`
}

// WithDefaults fills in the zero values.
func (c GrantCeiling) WithDefaults() GrantCeiling {
	c.MaxUses = cmp.Or(c.MaxUses, 1000)
	c.MaxAge = cmp.Or(c.MaxAge, 30*24*time.Hour)
	return c
}
