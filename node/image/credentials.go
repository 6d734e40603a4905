package image

import (
	"encoding/base64"
	"errors"
	"strings"

	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// credentialsFunc returns the username and password, or the token, for a server.
type credentialsFunc func(host string) (user, secret string, err error)

// credentials returns a function that provides the credentials that the kubelet sent. If the
// credentials specify a server, the function provides them only for that server.
func credentials(auth *criapi.AuthConfig) credentialsFunc {
	return func(host string) (user, secret string, err error) {
		if auth == nil || auth.ServerAddress != "" && !isServer(auth.ServerAddress, host) {
			return "", "", nil
		}
		if auth.Username != "" {
			return auth.Username, auth.Password, nil
		}
		if auth.IdentityToken != "" {
			return "", auth.IdentityToken, nil
		}
		if auth.Auth == "" {
			return "", "", nil
		}
		decoded, err := base64.StdEncoding.DecodeString(auth.Auth)
		user, secret, ok := strings.Cut(string(decoded), ":")
		if err != nil || !ok {
			return "", "", errors.New("decode registry credentials: they are not base64 of user:password")
		}
		return user, strings.Trim(secret, "\x00"), nil
	}
}

// isServer reports whether a server address, with or without a scheme and a path, refers to the
// host.
func isServer(address, host string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	server, _, _ := strings.Cut(address, "/")
	return server == host
}
