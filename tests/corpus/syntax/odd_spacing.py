

   # a comment that stands nowhere

if   x  :   # why
  a  =  1   ;

      # deeper, but nothing

  b=2
else :
          c = ( 3 )
d=4
