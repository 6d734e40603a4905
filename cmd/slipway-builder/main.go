// Command slipway-builder runs in build pods. It is a separate program because it contains
// BuildKit, which no other Slipway program needs. See package builder.
package main

import "github.com/slipway-platform/slipway/builder"

func main() { builder.Main() }
