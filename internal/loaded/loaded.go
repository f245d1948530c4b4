// Package loaded keeps documents that were read and checked, so that a worker reads a version once, however often it is needed.
//
// Reading a large document takes long, because all its expressions are compiled. A change of a catalog needs every document of a tenant:
// for its preview, when it is decided on, and when it runs. A [Documents] knows a document by its text, so it never returns an old one, and
// callers that need the same text at the same time wait for one of them. All parts of a worker share one.
package loaded

import (
	"github.com/jig-run/jig/internal/cache"
	"github.com/jig-run/jig/spec"
)

// Documents reads documents and keeps up to 256 of them. It is safe for concurrent use. If it is nil, it keeps nothing.
type Documents struct{ read cache.Texts[document] }

// document is a document with the problems that it has.
type document struct {
	spec.Document
	problems spec.Problems
}

// New returns a Documents that has read nothing yet.
func New() *Documents { return &Documents{read: cache.NewTexts[document]()} }

// Load is like [spec.Load]. What it returns is shared; callers must not modify what the document's Value points to.
func (d *Documents) Load(file string, body []byte) (spec.Document, spec.Problems) {
	return d.get(file, body, func() (spec.Document, spec.Problems) { return spec.Load(file, body) })
}

// Stored is like [spec.LoadStored], and shares what it returns like [Documents.Load].
func (d *Documents) Stored(kind, name string, body []byte) (spec.Document, spec.Problems) {
	return d.get(kind+"\x00"+name, body, func() (spec.Document, spec.Problems) { return spec.LoadStored(kind, name, body) })
}

// get returns a document that was read before under the same name and with the same text, or reads it.
func (d *Documents) get(name string, body []byte, read func() (spec.Document, spec.Problems)) (spec.Document, spec.Problems) {
	if d == nil {
		return read()
	}
	of, _ := d.read.Get(append([]byte(name+"\x00"), body...), func() (of document, err error) { //nolint:errcheck // reading has no error
		of.Document, of.problems = read()
		return of, nil
	})
	return of.Document, of.problems
}
