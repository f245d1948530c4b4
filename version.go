package jig

import "regexp"

// versionDigits is how many digits of a version people see.
const versionDigits = 16

var fullHash = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

// ShortVersion shortens every SHA-256 hash in text to its first 16 hex digits, as people see versions. The text may be a version, a
// policy version (name@hash) or the subject of an audit row.
func ShortVersion(text string) string {
	return fullHash.ReplaceAllStringFunc(text, func(hash string) string { return hash[:versionDigits] })
}
