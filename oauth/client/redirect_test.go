package client

import "testing"

func TestRedirectsGoOnlyToClient(t *testing.T) {
	client := &Client{RedirectURIs: []string{"https://app.example.com/callback"}}
	root := &Client{RedirectURIs: []string{"https://app.example.com", "https://other.example.com/?tenant=a", "com.example.app://login"}}
	tests := []struct {
		name, requested, want string
		client                *Client
	}{
		{"equal", "https://app.example.com/callback", "https://app.example.com/callback", client},
		{"none requested, one registered", "", "https://app.example.com/callback", client},
		{"none requested, several registered", "", "", root},
		{"below", "https://app.example.com/callback/x?y=z", "https://app.example.com/callback/x?y=z", client},
		{"with a query", "https://app.example.com/callback?y=z", "https://app.example.com/callback?y=z", client},
		{"below the root", "https://app.example.com/any", "https://app.example.com/any", root},
		{"a custom scheme", "com.example.app://login", "com.example.app://login", root},
		{"the query of the client", "https://other.example.com/?tenant=a", "https://other.example.com/?tenant=a", root},
		{"another query", "https://other.example.com/?tenant=b", "", root},
		{"a longer name", "https://app.example.com/callbackx", "", client},
		{"a longer host", "https://app.example.com.evil.org/callback", "", client},
		{"a user name that looks like the host", "https://app.example.com@evil.org/callback", "", client},
		{"a user name in front of the host", "https://x@app.example.com/callback", "", client},
		{"another scheme", "http://app.example.com/callback", "", client},
		{"another port", "https://app.example.com:8443/callback", "", client},
		{"a path upwards", "https://app.example.com/callback/../admin", "", client},
		{"an escaped parent path", "https://app.example.com/callback/%2e%2e/admin", "", client},
		{"a parent path with an escaped backslash", "https://app.example.com/callback/..%5cadmin", "", client},
		{"a parent path with a parameter", "https://app.example.com/callback/..;x/admin", "", client},
		{"a backslash", `https://app.example.com\@evil.org/callback`, "", client},
		{"no scheme", "//app.example.com/callback", "", client},
		{"a path", "/callback", "", client},
		{"a fragment", "https://app.example.com/callback#x", "", client},
		{"an empty fragment", "https://app.example.com/callback#", "", client},
		{"script", "javascript://app.example.com/%0aalert(1)", "", &Client{RedirectURIs: []string{"javascript://app.example.com/%0aalert(1)"}}},
		{"a line end", "https://app.example.com/callback\r\nLocation: https://evil.org", "", client},
		{"a space", "https://app.example.com/callback /x", "", client},
	}
	for _, tt := range tests {
		got, err := tt.client.Redirect(tt.requested)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
