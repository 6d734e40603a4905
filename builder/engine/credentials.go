package engine

import (
	"context"

	"github.com/moby/buildkit/session/auth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// credentials provides registry passwords to the engine, which uses them to fetch tokens.
type credentials struct {
	auth.UnimplementedAuthServer
	lookup func(host string) (user, password string)
}

// Register adds the service to a session.
func (c *credentials) Register(server *grpc.Server) { auth.RegisterAuthServer(server, c) }

// Credentials returns the user name and password for one registry.
func (c *credentials) Credentials(_ context.Context, req *auth.CredentialsRequest) (*auth.CredentialsResponse, error) {
	user, password := c.lookup(req.Host)
	return &auth.CredentialsResponse{Username: user, Secret: password}, nil
}

// GetTokenAuthority always returns an error, so the engine uses passwords.
func (c *credentials) GetTokenAuthority(context.Context, *auth.GetTokenAuthorityRequest) (*auth.GetTokenAuthorityResponse, error) {
	return nil, status.Error(codes.Unavailable, "passwords only")
}
