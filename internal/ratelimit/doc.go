// Package ratelimit decides when calls that limits concern may begin. It must not know how the state of limits is stored.
package ratelimit
