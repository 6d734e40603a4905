package console

import (
	"encoding/json"
	"net/http"
)

// clientConfig is the configuration of the console's script. It contains no secrets, because every
// visitor can read it.
type clientConfig struct {
	MasterURL      string      `json:"masterURL"`
	ClusterInfo    clusterInfo `json:"clusterInfo"`
	TimeoutMinutes int         `json:"inactivityTimeoutMinutes"`
	Extensions     extensions  `json:"extensions"`
	Downloads      []download  `json:"downloads"`
}

// serveConfig sends the settings that the browser requires.
func (s *server) serveConfig(w http.ResponseWriter, _ *http.Request) {
	current := s.settings()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(clientConfig{
		MasterURL: s.masterURL(), ClusterInfo: current.ClusterInfo, TimeoutMinutes: current.Features.InactivityTimeoutMinutes,
		Extensions: current.Extensions, Downloads: s.downloads(),
	})
}
