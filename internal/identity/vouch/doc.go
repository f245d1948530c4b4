// Package vouch lets a server vouch for the principals whom it has authenticated. The server signs statements about its requests to
// workers with its own key. A certificate of the root key makes that key valid for some time. Workers have the public root key in their
// settings, so somebody who can write only to the database cannot add a server's key.
package vouch
