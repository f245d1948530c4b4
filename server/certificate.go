package server

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/jig-run/jig"
)

// certificateAge is how long a certificate is used before its files are read again.
const certificateAge = time.Minute

// certificate is the server's certificate with its key. It rereads the files from time to time, so that a renewed certificate takes effect without a
// restart.
type certificate struct {
	file, keyFile string
	logger        *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	readAt  time.Time
}

// loadCertificate reads a certificate and its key from PEM files. It returns an error if they cannot be used.
func loadCertificate(file, keyFile string, logger *slog.Logger) (*certificate, error) {
	pair, err := tls.LoadX509KeyPair(file, keyFile)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the certificate cannot be used: %w", err).WithField(EnvTLSCert)
	}
	return &certificate{file: file, keyFile: keyFile, logger: logger, current: &pair, readAt: time.Now()}, nil
}

// forHandshake implements GetCertificate of [tls.Config]. While the files cannot be used, for example because only one of them has been replaced, it
// returns the previous certificate.
func (c *certificate) forHandshake(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) < certificateAge {
		return c.current, nil
	}
	c.readAt = time.Now()
	pair, err := tls.LoadX509KeyPair(c.file, c.keyFile)
	if err != nil {
		c.logger.WarnContext(hello.Context(), "the certificate cannot be reread; using the previous one", slog.Any("error", err))
		return c.current, nil
	}
	c.current = &pair
	return c.current, nil
}
