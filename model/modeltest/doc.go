// Package modeltest is a server for tests that speaks the wire formats of language models: Anthropic's Messages API at
// /v1/messages and OpenAI's Chat Completions at /v1/chat/completions, streamed and not. What it answers is given as steps,
// or by a function that sees each request. It refuses requests that the real services would refuse, and keeps all it got.
//
// It must not know the clients it is used with, nor anything of sessions and tools.
package modeltest
