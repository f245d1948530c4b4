package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/jig-run/jig"
)

// probeTimeout is how long a server may take to answer whether it is ready. It is longer than the server waits for the database and Temporal.
const probeTimeout = 2 * readyTimeout

// Probe asks the server with these settings, on this machine, whether it is ready.
func (s Settings) Probe(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s is not host:port", EnvAddress).WithField(EnvAddress)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if s.TLSCert != "" {
		scheme = "https"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "%s cannot be asked: %w", EnvAddress, err).WithField(EnvAddress)
	}
	// The certificate has the public name, and nothing secret is sent.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport, Timeout: probeTimeout + time.Second}).Do(request)
	if err != nil {
		return jig.Errorf(jig.CodeUnavailable, "no server answers on %s: %w", s.Address, err).WithField(EnvAddress)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return jig.Errorf(jig.CodeUnavailable, "the server on %s is not ready; its log says why", s.Address)
	}
	return nil
}
