// Package storage replaces the client of Google Cloud Storage, to which the server can archive histories. NewClient returns an
// error, so the methods are never called.
package storage

import (
	"context"
	"errors"
)

// ScopeFullControl is the scope of credentials that the server asks for.
const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errAbsent = errors.New("this server was built without Google Cloud Storage")

type (
	// Client is a client of the service.
	Client struct{}
	// BucketHandle refers to a bucket.
	BucketHandle struct{}
	// ObjectHandle refers to an object.
	ObjectHandle struct{}
	// ObjectIterator lists objects.
	ObjectIterator struct{}
	// Writer writes an object.
	Writer struct{}
	// Reader reads an object.
	Reader struct{}
	// Query selects objects.
	Query struct{ Prefix string }
	// BucketAttrs describes a bucket.
	BucketAttrs struct{}
	// ObjectAttrs describes an object.
	ObjectAttrs struct{ Name string }
)

// NewClient always returns an error.
func NewClient(context.Context, ...any) (*Client, error) { return nil, errAbsent }

// Bucket is never called.
func (*Client) Bucket(string) *BucketHandle { return nil }

// Object is never called.
func (*BucketHandle) Object(string) *ObjectHandle { return nil }

// Objects is never called.
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }

// Attrs is never called.
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error) { return nil, errAbsent }

// Next is never called.
func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, errAbsent }

// NewWriter is never called.
func (*ObjectHandle) NewWriter(context.Context) *Writer { return nil }

// NewReader is never called.
func (*ObjectHandle) NewReader(context.Context) (*Reader, error) { return nil, errAbsent }

// Attrs is never called.
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errAbsent }

// Write is never called.
func (*Writer) Write([]byte) (int, error) { return 0, errAbsent }

// Close is never called.
func (*Writer) Close() error { return errAbsent }

// CloseWithError is never called.
func (*Writer) CloseWithError(error) error { return errAbsent }

// Read is never called.
func (*Reader) Read([]byte) (int, error) { return 0, errAbsent }

// Close is never called.
func (*Reader) Close() error { return errAbsent }
