package engine

import (
	"context"

	"github.com/moby/buildkit/session/auth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// credentials answers the engine's questions for the passwords of registries. Tokens it fetches itself.
type credentials struct {
	auth.UnimplementedAuthServer
	of func(host string) (user, password string)
}

// Register adds the answers to a session.
func (c *credentials) Register(server *grpc.Server) { auth.RegisterAuthServer(server, c) }

// Credentials answers for one registry.
func (c *credentials) Credentials(_ context.Context, request *auth.CredentialsRequest) (*auth.CredentialsResponse, error) {
	user, password := c.of(request.Host)
	return &auth.CredentialsResponse{Username: user, Secret: password}, nil
}

// GetTokenAuthority says that this side keeps no keys, upon which the engine uses the passwords.
func (c *credentials) GetTokenAuthority(context.Context, *auth.GetTokenAuthorityRequest) (*auth.GetTokenAuthorityResponse, error) {
	return nil, status.Error(codes.Unavailable, "passwords only")
}
