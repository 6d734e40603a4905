package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

// membersTimeout is the timeout for requesting the member list.
const membersTimeout = 5 * time.Second

// initialCluster returns the current members when a joining member first starts, because etcd
// starts only with the current members. Other members can join or leave between the time when this
// member was added and the time when it starts.
func (e *Etcd) initialCluster(ctx context.Context) (string, error) {
	if _, err := os.Stat(filepath.Join(e.Dir, "member", "wal")); err == nil || e.Peers.Cluster == "" {
		return e.Peers.Cluster, nil // etcd has its own record of its members
	}
	own := "https://" + e.PeerAddress
	var errs []error
	for _, entry := range strings.Split(e.Peers.Cluster, ",") {
		_, url, _ := strings.Cut(entry, "=")
		if url == own {
			continue
		}
		members, err := requestMembers(ctx, e.Peers.Client, url)
		if err == nil {
			return joinMembers(members, e.Peers.Name, own)
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("request etcd members from the other masters: %w", errors.Join(errs...))
}

// PeerMembers requests the member list from the member at a peer address. The member responds even
// without a quorum.
func PeerMembers(ctx context.Context, client etcdmember.Client, url string) ([]etcdmember.Member, error) {
	members, err := requestMembers(ctx, client, url)
	return plainMembers(members), err
}

// requestMembers requests the member list from a member.
func requestMembers(ctx context.Context, credentials etcdmember.Client, url string) ([]membership.Member, error) {
	settings, err := credentials.TLS()
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: membersTimeout, Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/members", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var members []membership.Member
	if err := json.NewDecoder(response.Body).Decode(&members); err != nil {
		return nil, fmt.Errorf("read members from %s: %w", url, err)
	}
	return members, nil
}

// joinMembers lists members as NAME=URL, including this member itself, which has no name yet.
func joinMembers(members []membership.Member, name, own string) (string, error) {
	var list []string
	isMember := false
	for _, m := range members {
		for _, url := range m.PeerURLs {
			memberName := m.Name
			if url == own {
				memberName, isMember = name, true
			}
			if memberName == "" {
				memberName = m.ID.String()
			}
			list = append(list, memberName+"="+url)
		}
	}
	if !isMember {
		return "", errors.New("the other masters have removed this master, because it did not start in time: run `slipway down --purge` and let it join again")
	}
	return strings.Join(list, ","), nil
}
