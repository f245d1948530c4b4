// Package server runs the server: settings, assembly, and the life of the process. The HTTP interface is in internal/httpapi. The package
// connects others and contains no rule of its own.
package server
