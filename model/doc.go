// Package model asks language models for the next turn of a session: Anthropic's Messages API, every server that speaks
// OpenAI's Chat Completions (OpenAI itself, Ollama, vLLM, gateways), and script, a deterministic planner for automations
// that need no model and for tests.
//
// A provider turns the neutral transcript of jig.ModelRequest into its own wire format and what comes back into a
// jig.Turn. It asks once: retries, with the wait a provider asked for (jig.Error.RetryAfter), belong to whoever calls.
// Keys and addresses come in Settings; nothing is read from the environment by itself, and no error holds a key.
//
// It must not know workflows, the store, policy or how a prompt was put together.
package model
