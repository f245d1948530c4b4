package client

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Defaults of the settings.
const (
	DefaultAddress   = "127.0.0.1:7233"
	DefaultNamespace = "default"
	// DevEnvFile is the file in which jig-dev stores the environment of what it started, relative to the folder that it was started in. See
	// [FindDevEnv].
	DevEnvFile = ".jig/dev.env"
)

// Environment variables.
const (
	EnvAddress   = "JIG_TEMPORAL_ADDRESS"
	EnvNamespace = "JIG_TEMPORAL_NAMESPACE"
	EnvTaskQueue = "JIG_TASK_QUEUE"
	// EnvDevEnv names the file of jig-dev, for programs that run in another folder. If it is set and empty, no such file is used.
	EnvDevEnv = "JIG_DEV_ENV"
)

// SettingsRequest lists the sources of the settings. Each setting comes from the first source that has it: the field here (a flag), the
// JIG_ variable, Temporal's own environment and profile (TEMPORAL_ADDRESS, temporal.toml; these also give TLS and the API key), the file of
// jig-dev, and the default.
type SettingsRequest struct {
	Address   string
	Namespace string
	TaskQueue string
	// Environ is the process's environment, in the form of [os.Environ].
	Environ []string
	// DevEnv holds the variables in the file of jig-dev; see [FindDevEnv]. May be nil.
	DevEnv map[string]string
	// DevEnvPath is the path of that file, for messages; default [DevEnvFile].
	DevEnvPath string
}

// Settings say how to reach Temporal.
type Settings struct {
	// Temporal are the options for Temporal's client.
	Temporal sdk.Options
	// TaskQueue is the queue that the workers poll.
	TaskQueue string
	// Source says where the address came from, for messages, e.g. "JIG_TEMPORAL_ADDRESS".
	Source string
}

// LoadSettings determines the settings. It returns INVALID_INPUT if Temporal's own settings cannot be used, or if [EnvCompression] has
// another value than auto, on or off.
func LoadSettings(r SettingsRequest) (Settings, error) {
	env := ParseEnviron(r.Environ)
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{EnvLookup: environment(env)})
	if err != nil {
		return Settings{}, jig.Errorf(jig.CodeInvalidInput, "Temporal's own settings cannot be used: %w", err).
			WithHint("see TEMPORAL_CONFIG_FILE, TEMPORAL_PROFILE and the other TEMPORAL_ variables")
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return Settings{}, jig.Errorf(jig.CodeInvalidInput, "Temporal's own settings cannot be used: %w", err)
	}
	s := Settings{Temporal: options}
	s.Temporal.HostPort, s.Source = first(
		choice{r.Address, "--temporal-address"}, choice{env[EnvAddress], EnvAddress}, choice{profile.Address, "Temporal's own settings"},
		choice{r.DevEnv[EnvAddress], cmp.Or(r.DevEnvPath, DevEnvFile)}, choice{DefaultAddress, "default"})
	s.Temporal.Namespace, _ = first(
		choice{value: r.Namespace}, choice{value: env[EnvNamespace]}, choice{value: profile.Namespace},
		choice{value: r.DevEnv[EnvNamespace]}, choice{value: DefaultNamespace})
	s.TaskQueue, _ = first(
		choice{value: r.TaskQueue}, choice{value: env[EnvTaskQueue]}, choice{value: r.DevEnv[EnvTaskQueue]}, choice{value: protocol.TaskQueue})
	compress, _ := first(choice{value: env[EnvCompression]}, choice{value: r.DevEnv[EnvCompression]})
	if s.Temporal.ConnectionOptions.GrpcCompression, err = compression(compress); err != nil {
		return Settings{}, err
	}
	return s, nil
}

type choice struct{ value, source string }

func first(choices ...choice) (value, source string) {
	for _, c := range choices {
		if c.value != "" {
			return c.value, c.source
		}
	}
	return "", ""
}

// environment implements envconfig's lookup on a map.
type environment map[string]string

func (e environment) LookupEnv(name string) (string, bool) { v, ok := e[name]; return v, ok }

func (e environment) Environ() []string {
	list := make([]string, 0, len(e))
	for k, v := range e {
		list = append(list, k+"="+v)
	}
	return list
}

// ParseEnviron converts an environment in the form of [os.Environ] to a map; later entries win.
func ParseEnviron(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		if k, v, ok := strings.Cut(entry, "="); ok {
			env[k] = v
		}
	}
	return env
}

// ReadEnvFile reads a file of NAME=value lines, with an optional "export" before the name and optional quotes around the value. If the file
// does not exist, it returns nil.
func ReadEnvFile(path string) (map[string]string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // callers pass a constant path, not user input
	if os.IsNotExist(err) {
		return nil, nil // without the file there are no values
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	env := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export ")
		k, v, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		env[strings.TrimSpace(k)] = unquote(strings.TrimSpace(v))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return env, nil
}

func unquote(v string) string {
	if n := len(v); n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
		return v[1 : n-1]
	}
	return v
}

// FindDevEnv reads the file in which jig-dev stores the environment of what it started, and returns its variables and its
// path. It is the file that JIG_DEV_ENV in environ (in the form of [os.Environ]) names, or else .jig/dev.env in the current folder, or in
// the nearest folder above it that has one. Above the current folder, a file counts only if it belongs to the current user or to root, so
// that nobody else can redirect a program by a file in, for example, /tmp. Without a file, both results are empty.
func FindDevEnv(environ []string) (env map[string]string, path string, err error) {
	named, set := ParseEnviron(environ)[EnvDevEnv]
	switch {
	case set && named == "":
		return nil, "", nil
	case set:
		if env, err = ReadEnvFile(named); err == nil && env == nil {
			err = jig.Errorf(jig.CodeInvalidInput, "%s names a file that does not exist: %s", EnvDevEnv, named).WithField(EnvDevEnv).
				WithHint("jig-dev writes it to " + DevEnvFile + " in the folder that it is started in; is it running?")
		}
		return env, named, err
	}
	if env, err = ReadEnvFile(DevEnvFile); env != nil || err != nil {
		return env, DevEnvFile, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, "", nil //nolint:nilerr // a folder that was removed has no folders above it
	}
	if path = devEnvAbove(dir); path == "" {
		return nil, "", nil
	}
	env, err = ReadEnvFile(path)
	return env, path, err
}

// devEnvAbove returns the path of the nearest file of jig-dev above a folder, or "".
func devEnvAbove(dir string) string {
	for above := filepath.Dir(dir); above != dir; dir, above = above, filepath.Dir(above) {
		path := filepath.Join(above, DevEnvFile)
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && trusted(info, os.Getuid()) {
			return path
		}
	}
	return ""
}

// trusted reports whether a file belongs to the user or to root, and nobody else may write to it.
func trusted(info fs.FileInfo, user int) bool {
	owner, known := ownerOf(info)
	if !known {
		return true // the system has no owners in this form
	}
	return (owner == user || owner == 0) && info.Mode().Perm()&0o022 == 0
}
