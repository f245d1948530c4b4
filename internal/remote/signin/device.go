package signin

import (
	"context"
	"errors"

	"github.com/jig-run/jig"
)

// Code is a code for logging in on any device: the person opens the address and enters the code there.
type Code struct {
	Address, Code string
	// Complete is the address with the code in it; empty if the provider does not send one.
	Complete string
}

// TakesDevices reports whether the provider supports the device flow.
func (p *Provider) TakesDevices() bool { return p.config.Endpoint.DeviceAuthURL != "" }

// Device logs in with a browser on any device (RFC 8628). show tells the person what to open and enter there.
func (p *Provider) Device(ctx context.Context, show func(Code)) (Login, error) {
	if !p.TakesDevices() {
		return Login{}, jig.Errorf(jig.CodeInvalidInput, "the identity provider %s does not support logging in on another device", p.issuer).WithField("device").WithHint("leave out --device")
	}
	asked, err := p.config.DeviceAuth(p.context(ctx), p.options...)
	if err != nil {
		return Login{}, refusal(ctx, p.issuer, err)
	}
	show(Code{Address: asked.VerificationURI, Code: asked.UserCode, Complete: asked.VerificationURIComplete})
	token, err := p.config.DeviceAccessToken(p.context(ctx), asked, p.options...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return Login{}, jig.Errorf(jig.CodeNotPermitted, "nobody entered the code in time").WithReason("login").WithHint("run `jig login` again")
	}
	if err != nil {
		return Login{}, refusal(ctx, p.issuer, err)
	}
	return p.login(token)
}
