// Package config declares the documents that the process and its parent exchange. It uses only the standard library.
package config

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Config is the document on standard input.
type Config struct {
	// DatabaseURL connects to the PostgreSQL server as a role that may create databases. Required.
	DatabaseURL string `json:"database_url"`
	// Frontend, History, Matching and Worker are addresses of Temporal's services, host:port. Required.
	Frontend string `json:"frontend"`
	History  string `json:"history"`
	Matching string `json:"matching"`
	Worker   string `json:"worker"`
	// UI is the address of the Web UI, host:port. If it is empty, there is no Web UI.
	UI string `json:"ui,omitempty"`
	// Namespace is the namespace to register, which the Web UI shows first. If it is empty, none is registered.
	Namespace string `json:"namespace,omitempty"`
	// Retention is how long closed workflows are kept, in nanoseconds. It applies only when Namespace is created.
	Retention time.Duration `json:"retention,omitempty"`
	// SearchAttributes maps the names of the namespace's search attributes to Temporal's types, such as "Keyword".
	SearchAttributes map[string]string `json:"search_attributes,omitempty"`
	// Settings holds dynamic configuration by Temporal's names.
	Settings map[string]any `json:"settings,omitempty"`
	// LogLevel is the lowest level that is logged.
	LogLevel slog.Level `json:"log_level"`
}

// Report is one line on standard output. Exactly one field is set.
type Report struct {
	// Ready says that everything has been started.
	Ready bool `json:"ready,omitempty"`
	// Taken is an address that another process listens on; the process exits.
	Taken string `json:"taken,omitempty"`
	// Failed says why the process exits, or why the running server cannot continue and should be stopped.
	Failed string `json:"failed,omitempty"`
}

// Read reads a Config. Whole numbers in Settings become int, as dynamic configuration expects; other numbers become float64.
func Read(in io.Reader) (Config, error) {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	var c Config
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	for name, value := range c.Settings {
		converted, err := convert(value)
		if err != nil {
			return c, fmt.Errorf("the setting %s: %w", name, err)
		}
		c.Settings[name] = converted
	}
	return c, nil
}

// Addresses returns the addresses of all listeners.
func (c Config) Addresses() []string {
	all := []string{c.Frontend, c.History, c.Matching, c.Worker}
	if c.UI != "" {
		all = append(all, c.UI)
	}
	return all
}

// convert replaces the numbers in a value, at any depth.
func convert(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n), nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %s: %w", v, err)
		}
		return f, nil
	case map[string]any:
		for name := range v {
			if v[name], err = convert(v[name]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = convert(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}
