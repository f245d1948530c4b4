package toolname

import (
	"slices"
	"strings"
)

// Listed reports whether a list of names, "category.*" and "*" contains a tool.
func Listed(list []string, name string) bool {
	for _, entry := range list {
		if entry == "*" || entry == name {
			return true
		}
		if prefix, ok := strings.CutSuffix(entry, "*"); ok && strings.HasSuffix(prefix, ".") && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Registers reports whether a tool changes which documents are in force. Such a tool must work while a document cannot be used, because nobody
// could replace the document otherwise.
func Registers(name string) bool {
	return slices.Contains([]string{CatalogPut, CatalogRemove, BundleInstall, BundleRemove}, name)
}
