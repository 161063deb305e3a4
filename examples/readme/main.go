package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/weirstream/weir"
	"github.com/weirstream/weir/connector/files"
)

type count struct {
	N weir.Value[int64] `state:"n"` // one for each word
}

func (c *count) Process(ctx *weir.KeyedContext[string], word string, out weir.Out[string]) error {
	c.N.Set(c.N.Get() + 1)
	out.Emit(fmt.Sprint(word, " ", c.N.Get()))
	return nil
}

func words(line string, out weir.Out[string]) error {
	for _, w := range strings.Fields(line) {
		out.Emit(w)
	}
	return nil
}

func main() {
	env := weir.NewEnv()
	env.EnableCheckpointing(time.Second, weir.ExactlyOnce).Storage = "state"
	env.From(files.Lines("input")).UID("lines").
		FlatMap(words).
		KeyBy(func(w string) string { return w }).
		Process(&count{}).UID("count").
		To(files.Sink("output", files.AppendLine)).UID("output")
	if err := env.Execute(context.Background(), "words"); err != nil {
		log.Fatal(err)
	}
}
