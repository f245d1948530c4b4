// Package signin logs the command line in at the identity provider of a server, keeps the login, and renews its access token. The server says
// which provider, client and audience to use; the provider never sees the server's address, and the server never sees the refresh token.
package signin
