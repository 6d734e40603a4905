// Command slipway-builder is what the pods of builds run. It is a program of its own because
// BuildKit is linked into it, which no other part of Slipway needs. See package builder.
package main

import "github.com/slipway-platform/slipway/builder"

func main() { builder.Main() }
