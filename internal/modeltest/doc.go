// Package modeltest is a test server that speaks the wire formats of language models: Anthropic's Messages API at /v1/messages and OpenAI's
// Chat Completions at /v1/chat/completions, streamed or not. Its answers are given as a list of steps, or by a function that sees each
// request. It refuses requests that the real services would refuse, and records all valid requests.
//
// It must not depend on the clients that it is used with, nor on sessions and tools.
package modeltest
