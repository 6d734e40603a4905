package osb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Identity returns the header that identifies the originator of a request. It contains the platform
// and the user as base64-encoded JSON.
func Identity(user *authenticationv1.UserInfo) (string, error) {
	text, err := json.Marshal(struct {
		Username string                                 `json:"username"`
		UID      string                                 `json:"uid"`
		Groups   []string                               `json:"groups"`
		Extra    map[string]authenticationv1.ExtraValue `json:"extra,omitempty"`
	}{user.Username, user.UID, user.Groups, user.Extra})
	if err != nil {
		return "", fmt.Errorf("encode originating identity: %w", err)
	}
	return Platform + " " + base64.StdEncoding.EncodeToString(text), nil
}

// Platform is the platform name that is sent to brokers.
const Platform = "kubernetes"
