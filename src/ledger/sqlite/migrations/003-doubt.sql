-- Earlier versions did not note whether an attempt may be stored although it was not answered clearly.
UPDATE batches SET answer = answer || '; an attempt without a clear answer may be stored'
  WHERE state IN ('ready', 'sending') AND attempts > 0 AND answer IS NOT NULL AND answer NOT LIKE '%; an attempt without a clear answer may be stored';
