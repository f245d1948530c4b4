// Package openid checks what identity providers say about people: the access tokens that they send, and the logins that a browser completes.
//
// A [Binding] of the server's settings says which issuer and audience belong to which tenant, and which algorithms count. [Providers] hold the bindings and
// an issuer for each provider, whose documents and keys are fetched when they are first needed and again now and then, so that a server starts and goes on
// while a provider is away.
//
// An access token is checked by AccessToken: it must be one for this server, and no id token. A login begins with BeginLogin and ends with FinishLogin; what
// must be kept meanwhile is in a cookie of the browser, so that any server can complete it. Both return an [Identity].
//
// The package does not know what a tenant's document says about a person.
package openid
