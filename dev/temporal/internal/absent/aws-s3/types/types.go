// Package types declares the types that the client of S3 returns.
package types

type (
	// CommonPrefix is a folder of a listing.
	CommonPrefix struct{ Prefix *string }
	// Object is an object of a listing.
	Object struct{ Key *string }
	// NoSuchBucket is an error that is never returned.
	NoSuchBucket struct{}
	// NoSuchKey is an error that is never returned.
	NoSuchKey struct{}
)

// Error describes the error.
func (*NoSuchBucket) Error() string { return "no such bucket" }

// Error describes the error.
func (*NoSuchKey) Error() string { return "no such key" }
