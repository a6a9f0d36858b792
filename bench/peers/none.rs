// cargo wants a target; the manifest beside it is there to name sources, and nothing of this is compiled.
