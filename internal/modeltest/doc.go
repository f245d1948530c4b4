// Package modeltest is a test server that speaks the wire formats of language models: Anthropic's Messages API at /v1/messages and OpenAI's
// Chat Completions at /v1/chat/completions, streamed or not.
//
// A [Server] answers with a list of steps ([New]), or with a function that sees each request ([Func]). A [Reply] is a text, calls, an error, or
// an answer that is broken in one of the ways that real providers break theirs; [NewBroken] makes random ones together with what a client has
// to make of them. The server refuses requests that the real services would refuse, and records all valid requests.
//
// It must not depend on the clients that it is used with, nor on sessions and tools.
package modeltest
